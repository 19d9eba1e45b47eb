"""Our end of a running sandbox: the process that holds it, the socket to its supervisor, its death.

The socket is the sandbox's standard error: nothing else is inherited, and what bubblewrap has to say when it
fails arrives as a message like any other.
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
from dataclasses import dataclass, field
from importlib.abc import InspectLoader
from typing import Any

READY, FORKED = b"ready", b"forked\n"

ENTER = """import _socket,marshal,os,sys
control=_socket.socket(fileno=2)
fd=int.from_bytes(control.recvmsg(16,_socket.CMSG_SPACE(4))[1][0][2],sys.byteorder)
confine,code,options=marshal.loads(os.pread(fd,os.fstat(fd).st_size,0))
os.close(fd)
for part,given in(confine,(options["confine"],)),(code,(control,options,int(sys.argv[1]))):
 space={"__name__":"inside"}
 if part:exec(marshal.loads(part),space);space["main"](*given)"""


@dataclass
class Launch:
    """A program that becomes the sandbox. `handles` are inherited by it; `user` is who it runs as."""

    argv: list[str]
    handles: list[int] = field(default_factory=list)
    user: tuple[int, int] | None = None
    streams: tuple[int, int] | None = None
    """Output and error of a first command that is started along, given as standard output and input."""
    program: int | None = None
    """A handle of the program, where its name cannot be reached; among `handles`."""
    environment: dict[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """What `subprocess` is told, beside the argument list and the streams."""
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
    fd = os.memfd_create("handrail", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Channel:
    """One command's own line to the supervisor. Closing it ends the command."""

    def __init__(self, line: socket.socket, link: "Link") -> None:
        self._line = line
        self.link = link

    def fileno(self) -> int:
        return self._line.fileno()

    def receive(self) -> tuple[bytes, list[int]]:
        """A message and its handles; an empty one means that the sandbox is gone."""
        try:
            message, handles, _, _ = socket.recv_fds(self._line, 65536, 2)
        except ConnectionError:
            return b"", []
        return message, handles

    def end(self) -> None:
        with contextlib.suppress(OSError):  # the sandbox is gone, and the command with it
            self._line.send(b"end", socket.MSG_DONTWAIT)

    def close(self) -> None:
        self._line.close()


class Link:
    def __init__(self, options: dict[str, Any], *, confine: bool = False) -> None:
        self._control, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._spawned, self._ended = threading.Event(), threading.Event()
        self._trouble: OSError | None = None
        self._said: list[bytes] = []
        self._lock = threading.Lock()
        self._lost = False
        self._parts = (_code_of("confine") if confine else None, _code_of("supervisor"), options)

    def spawn(self, launch: Launch) -> None:
        """Start it from a thread that lives as long: it is bound to die with the thread that started it."""
        self._thread = threading.Thread(target=self._hold, args=(launch,), name="handrail-sandbox", daemon=True)
        self._thread.start()
        self._spawned.wait()
        if self._trouble is not None:
            raise self._trouble
        code = memory_file(marshal.dumps(self._parts))
        with contextlib.suppress(ConnectionError):  # it has ended already, as whoever waits for it will hear
            socket.send_fds(self._control, [b"code"], [code])
        os.close(code)

    def _hold(self, launch: Launch) -> None:
        out, error = launch.streams or (subprocess.DEVNULL, subprocess.DEVNULL)
        try:
            self._process = subprocess.Popen(
                launch.argv,
                stdin=error,
                stdout=out,
                stderr=self._theirs.fileno(),
                start_new_session=True,
                **launch.options(),
            )
        except OSError as trouble:
            self._trouble = trouble
        finally:
            self._theirs.close()
            self._spawned.set()
        if self._process is not None:
            self._process.wait()
        self._ended.set()

    def stands(self, seconds: float) -> bool:
        """Wait until the supervisor says so; False when it ended, or never came up, instead."""
        with self._lock:
            while READY not in self._said:
                self._control.settimeout(seconds)
                try:
                    message = self._control.recv(65536)
                except OSError:
                    message = b""
                if not message:
                    return False
                self._said.append(message)
            return True

    def forked(self) -> bool:
        """Whether the first command runs by now, without waiting. Ask when the control socket is readable."""
        with self._lock:
            self._control.settimeout(0)
            with contextlib.suppress(OSError):
                while message := self._control.recv(65536):
                    self._said.append(message)
            return FORKED in self._said

    @property
    def begun(self) -> bool:
        """Whether anything ran inside; ask when it ended."""
        return self.forked() or READY in self._said

    @property
    def ready(self) -> bool:
        """Whether the supervisor is up by now, without waiting."""
        self.forked()
        return READY in self._said

    @property
    def control(self) -> int:
        return self._control.fileno()

    @property
    def said(self) -> str:
        words = b"".join(m for m in self._said if m not in (READY, FORKED))
        return words.decode(errors="replace").strip()

    @property
    def alive(self) -> bool:
        return not self._lost and not self._ended.is_set()

    def lost(self) -> None:
        """The supervisor no longer answers, though the process that holds it may take a moment to end."""
        self._lost = True

    def request(self, request: dict[str, Any], *handles: int) -> Channel:
        """Hand over a command. Raises ConnectionError if nobody is there to take it."""
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

    def ended(self) -> Channel:
        """What a request gets that nobody was there to take: its line has ended."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.close()
        return Channel(ours, self)

    def close(self, patience: float) -> None:
        self._control.close()
        self._theirs.close()
        if self._thread is not None:
            if not self._ended.wait(patience):
                self.kill()
            self._thread.join()

    def kill(self, patience: float = 0) -> None:
        """End it at once. Its child goes first: bubblewrap's, while young, does not yet die with its parent.

        With `patience`, wait so long for the child to be gone, which it is when all that it held are.
        """
        if self._process is None or self._ended.is_set():
            return
        self._process.send_signal(signal.SIGSTOP)
        pid, gone = self._process.pid, []
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", "rb") as children:
            for child in map(int, children.read().split()):
                gone.append(os.pidfd_open(child))
                os.kill(child, signal.SIGKILL)
        self._process.send_signal(signal.SIGKILL)
        until = time.monotonic() + patience
        for handle in gone:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(max(0.0, until - time.monotonic()) * 1000)
            os.close(handle)


@functools.cache
def _code_of(module: str) -> bytes:
    """The compiled code of a sibling module, from its cache file where there is one, ready to be sent."""
    name = f"{__package__}.inside.{module}"
    spec = importlib.util.find_spec(name)
    if spec is None or not isinstance(spec.loader, InspectLoader):
        raise ModuleNotFoundError(name)
    return marshal.dumps(spec.loader.get_code(name))


def entering(interpreter: list[str]) -> list[str]:
    """The interpreter, bare, with the few lines that fetch the supervisor."""
    return [*interpreter, "-I", "-S", "-c", ENTER]
