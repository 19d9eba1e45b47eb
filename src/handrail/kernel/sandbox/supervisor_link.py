"""Starts the process that holds a sandbox, and talks to the supervisor inside over a socket.

The socket is the sandbox's standard error: the sandbox inherits nothing else, and the error text of bubblewrap arrives
as a message like any other.
"""

import contextlib
import functools
import importlib.util
import marshal
import os
import select
import signal
import socket
import subprocess
import threading
import time
from dataclasses import field
from importlib.abc import InspectLoader
from typing import Any

from handrail.model.faults import CommandNotStarted
from handrail.model.record import record

READY, FORKED, PORT = b"ready", b"forked\n", b"port"

ENTER = """import _socket,marshal,os,sys
control=_socket.socket(fileno=2)
fd=int.from_bytes(control.recvmsg(16,_socket.CMSG_SPACE(4))[1][0][2],sys.byteorder)
confine,port,code,options=marshal.loads(os.pread(fd,os.fstat(fd).st_size,0))
os.close(fd)
for part,given in(confine,(options["confine"],)),(port,(control,)),(code,(control,options,int(sys.argv[1]))):
 space={"__name__":"inside"}
 if part:exec(marshal.loads(part),space);space["main"](*given)"""


@record
class Launch:
    """Holds how to start the program that becomes the sandbox. It inherits `handles` and runs as `user`."""

    argv: list[str]
    handles: list[int] = field(default_factory=list)
    user: tuple[int, int] | None = None
    streams: tuple[int, int] | None = None
    """Output and error of a first command that starts along, passed as standard output and standard input."""
    program: int | None = None
    """A handle of the program, if its user cannot reach its path; one of `handles`."""
    environment: dict[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return the options for `subprocess`, without the argument list and the streams."""
        uid, gid = self.user or (None, None)
        return {
            "executable": None if self.program is None else f"/proc/self/fd/{self.program}",
            "pass_fds": self.handles,
            "env": self.environment,
            "cwd": "/",
            "user": uid,
            "group": gid,
            "extra_groups": [] if self.user else None,
        }


def memory_file(content: bytes) -> int:
    """Open a file in memory with this content, at its beginning."""
    fd = os.memfd_create("handrail", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Channel:
    """Connects one command with the supervisor. To close it ends the command."""

    def __init__(self, sock: socket.socket, link: "Link") -> None:
        self._sock = sock
        self.link = link

    def fileno(self) -> int:
        return self._sock.fileno()

    def receive(self) -> tuple[bytes, list[int]]:
        """Return the next message and its handles; an empty message means that the sandbox is gone."""
        try:
            message, handles, _, _ = socket.recv_fds(self._sock, 65536, 2)
        except ConnectionError:
            return b"", []
        return message, handles

    @property
    def has_news(self) -> bool:
        """True if a message waits or the channel is closed; after a command's end: if its children have ended."""
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        return bool(poller.poll(0))

    @property
    def ended(self) -> bool:
        """True if the channel is closed: no process of the command is left, or this process ends the command."""
        if self._sock.fileno() < 0:
            return True
        poller = select.poll()
        poller.register(self._sock, 0)  # the end is reported in any case
        return bool(poller.poll(0))

    def end(self) -> None:
        """Ask the supervisor to end the command."""
        with contextlib.suppress(OSError):  # the sandbox is gone, and the command with it
            self._sock.send(b"end", socket.MSG_DONTWAIT)

    def look(self) -> None:
        """Ask the supervisor for the processes and the directory of the command."""
        with contextlib.suppress(OSError):  # the sandbox is gone, which the closed channel reports
            self._sock.send(b"look", socket.MSG_DONTWAIT)

    def close(self) -> None:
        self._sock.close()


class Link:
    """Connects this process with one sandbox, from its start to its end."""

    def __init__(self, options: dict[str, Any], *, confine: bool = False, listens: bool = False) -> None:
        """Prepare a link. With `listens`, the sandbox hands out a port in its network."""
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._spawned, self._ended = threading.Event(), threading.Event()
        self._spawn_error: OSError | None = None
        self._messages: list[bytes] = []
        self._lock = threading.Lock()
        self._lost = False
        self._port: socket.socket | None = None
        before = (_code_of("confine") if confine else None, _code_of("open_port") if listens else None)
        self._parts = (*before, _code_of("supervisor"), options)

    def spawn(self, launch: Launch) -> None:
        """Start the program from a thread that lives as long: the program dies with the thread that started it."""
        self._thread = threading.Thread(target=self._hold, args=(launch,), name="handrail-sandbox", daemon=True)
        self._thread.start()
        self._spawned.wait()
        if self._spawn_error is not None:
            raise self._spawn_error
        code = memory_file(marshal.dumps(self._parts))
        with contextlib.suppress(ConnectionError):  # the program has ended; the next call that waits for it reports it
            socket.send_fds(self._control, [b"code"], [code])
        os.close(code)

    def _hold(self, launch: Launch) -> None:
        """Run the program to its end; the body of the thread."""
        stdout, stderr = launch.streams or (subprocess.DEVNULL, subprocess.DEVNULL)
        try:
            self._process = subprocess.Popen(
                launch.argv,
                stdin=stderr,
                stdout=stdout,
                stderr=self._theirs.fileno(),
                start_new_session=True,
                **launch.options(),
            )
        except OSError as error:
            self._spawn_error = error
        finally:
            self._theirs.close()
            self._spawned.set()
        if self._process is not None:
            self._process.wait()
        self._ended.set()

    def wait_until_ready(self, seconds: float) -> bool:
        """Wait until the supervisor reports that it runs. Return False if it ended or did not report in time."""
        with self._lock:
            while READY not in self._messages:
                self._control.settimeout(seconds)
                try:
                    message = self._receive()
                except OSError:
                    message = b""
                if not message:
                    return False
            return True

    def _receive(self) -> bytes:
        """Return the next message; keep it, and the port that may come with it."""
        message, handles, _, _ = socket.recv_fds(self._control, 65536, 1)
        if message:
            self._messages.append(message)
        for handle in handles:
            self._port = socket.socket(fileno=handle)
        return message

    def take_port(self) -> socket.socket | None:
        """Return the listening socket in the network of the sandbox, once; the caller closes it."""
        port, self._port = self._port, None
        return port

    def forked(self) -> bool:
        """Return True if the first command was forked by now; do not wait."""
        with self._lock:
            self._control.settimeout(0)
            with contextlib.suppress(OSError):
                while self._receive():
                    pass
            return FORKED in self._messages

    @property
    def ran_something(self) -> bool:
        """True if anything ran inside; meaningful once the sandbox has ended."""
        return self.forked() or READY in self._messages

    @property
    def ready(self) -> bool:
        """True if the supervisor runs by now."""
        self.forked()
        return READY in self._messages

    @property
    def control(self) -> int:
        """The control socket; readable when a message arrived."""
        return self._control.fileno()

    @property
    def error_text(self) -> str:
        """Return the standard error of the program, without the messages of the supervisor."""
        text = b"".join(message for message in self._messages if message not in (READY, FORKED, PORT))
        return text.decode(errors="replace").strip()

    @property
    def alive(self) -> bool:
        """True if the sandbox has neither ended nor been marked lost."""
        return not self._lost and not self._ended.is_set()

    def mark_lost(self) -> None:
        """Record that the supervisor does not answer any more; its process may take a moment to end."""
        self._lost = True

    def request(self, request: dict[str, Any], *handles: int) -> Channel:
        """Send a command to the supervisor. Raises ConnectionError if the sandbox is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        payload = memory_file(marshal.dumps(request))
        try:
            self._control.settimeout(None)
            socket.send_fds(self._control, [b"request"], [payload, theirs.fileno(), *handles])
        except ConnectionError:
            ours.close()
            raise
        finally:
            os.close(payload)
            theirs.close()
        return Channel(ours, self)

    def closed_channel(self) -> Channel:
        """Return a channel that has ended, for a request that could not be sent."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.close()
        return Channel(ours, self)

    def close(self, patience: float) -> None:
        """Close the socket, which ends the sandbox; kill it after `patience` seconds."""
        self._control.close()
        self._theirs.close()
        if (port := self.take_port()) is not None:
            port.close()
        if self._thread is not None:
            if not self._ended.wait(patience):
                self.kill()
            self._thread.join()

    def kill(self, patience: float = 0) -> None:
        """Kill the sandbox. Kill the child first: a young child of bubblewrap does not die with its parent yet.

        Wait at most `patience` seconds for the child's end, which comes after the end of all processes inside.
        """
        if self._process is None or self._ended.is_set():
            return
        self._process.send_signal(signal.SIGSTOP)
        killed = []
        with contextlib.suppress(OSError):
            for child in self._children():
                killed.append(os.pidfd_open(child))
                os.kill(child, signal.SIGKILL)
        self._process.send_signal(signal.SIGKILL)
        until = time.monotonic() + patience
        for handle in killed:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(max(0.0, until - time.monotonic()) * 1000)
            os.close(handle)

    @property
    def first_process(self) -> int | None:
        """The number of the first process inside bubblewrap, as this process sees it; None if there is none."""
        with contextlib.suppress(OSError):
            return next(iter(self._children()), None)
        return None

    def _children(self) -> list[int]:
        if self._process is None or self._ended.is_set():
            return []
        pid = self._process.pid
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as children:
            return [int(child) for child in children.read().split()]


@functools.cache
def _code_of(module: str) -> bytes:
    """Return the compiled code of a module of `inside/` as bytes; read from its cache file if there is one."""
    name = f"{__package__}.inside.{module}"
    spec = importlib.util.find_spec(name)
    if spec is None or not isinstance(spec.loader, InspectLoader):
        raise ModuleNotFoundError(name)
    return marshal.dumps(spec.loader.get_code(name))


def entering(interpreter: list[str]) -> list[str]:
    """Return the command that starts an interpreter, isolated, with the few lines that receive the supervisor."""
    return [*interpreter, "-I", "-S", "-c", ENTER]


def refuse_nul(request: dict[str, Any]) -> None:
    """Raise CommandNotStarted for a NUL in a word, which no program can receive."""
    words = [*request["argv"], request["cwd"], *request["additions"], *request["additions"].values()]
    if any(b"\0" in word for word in words):
        raise CommandNotStarted(os.fsdecode(request["argv"][0]), os.fsdecode(request["cwd"]), "EINVAL")
