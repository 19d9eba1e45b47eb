"""Holds programs that run on between calls: terminals, jobs, and shells that remember.

The background reader fills a held program; calls wait for what it reports. All changes happen under its condition.
"""

import array
import contextlib
import errno
import fcntl
import os
import select
import termios
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from handrail.kernel.process.bounded_output import BoundedOutput, Output
from handrail.kernel.sandbox.sandbox import Channel, Confinement, Sandbox, StartedCommand
from handrail.model.faults import CommandNotStarted

if TYPE_CHECKING:
    from handrail.kernel.process.runner import Processes


_ECHO_SECONDS = 0.1
"""How long the echo of a terminal stays off after the user has typed."""


class HeldProgram:
    """Holds one running program: its channel to the supervisor, and how it ended."""

    def __init__(self, started: StartedCommand, *sources: str) -> None:
        self.confinement: Confinement = started.confinement
        self.restarted = started.restarted
        self._network = started.network
        self.channel: Channel = started.channel
        self.changed = threading.Condition()
        self.status: int | None = None
        self.limit: str | None = None
        self.others: tuple[int, ...] = ()
        """The processes that the ended program left behind, or that ended with it."""
        self.open = {"channel", *sources}
        """The sources from which something may still arrive."""
        self.reads_to_end = False
        """True if the output is complete only when its stream is closed: a terminal hands it on with a delay."""
        self._failed = 0

    def take_message(self, message: bytes) -> None:
        """Note what the supervisor reports; an empty message means that the channel is closed."""
        with self.changed:
            word, *facts = message.split(b" ", 2 if message.startswith(b"look ") else -1)
            if word == b"exit":
                self._note_exit(facts)
            elif word == b"failed":
                self._failed = int(facts[0])
            elif word == b"look":
                self._note_look(facts)
            if not message:
                self.open.discard("channel")
                if self.status is None:  # the sandbox died with everything in it
                    self.open.clear()
            self.changed.notify_all()

    def _note_exit(self, facts: list[bytes]) -> None:
        self.status, self.others = int(facts[1]), numbers(facts[2])
        self.limit = None if facts[3] == b"-" else facts[3].decode()

    def _note_look(self, facts: list[bytes]) -> None:
        raise NotImplementedError

    def tried_network(self, *, idle: bool = False) -> bool | None:
        """Return whether the program tried to reach a network that the sandbox does not have, since the last time.

        None if that is not known. `idle` says whether the program can make no attempt until the next time.
        """
        return None if self._network is None else self._network.take(idle=idle)

    @property
    def lost(self) -> bool:
        """True if the sandbox died with the program, so that its exit status is unknown."""
        return self.status is None and "channel" not in self.open

    def end(self, seconds: float) -> None:
        """Ask the supervisor to end all processes of the program, and wait at most `seconds` for that."""
        self.channel.end()
        with self.changed:
            self.changed.wait_for(lambda: "channel" not in self.open, seconds)

    def end_surely(self, sandbox: Sandbox) -> None:
        """End all processes of the program; kill the whole sandbox if they do not end in time."""
        patience = sandbox.settings.limits.end_patience_seconds
        self.end(patience)
        if "channel" in self.open:
            sandbox.kill(self.channel.link)
            with self.changed:
                self.changed.wait_for(lambda: "channel" not in self.open, patience)

    def abandon(self) -> None:
        """Let waiting calls return: the session ends."""
        with self.changed:
            self.open.clear()
            self.reads_to_end = False
            self.changed.notify_all()

    def release(self) -> None:
        """Close the handles, which also ends the program."""
        self.channel.close()


class OutputProgram(HeldProgram):
    """Holds a program whose output is kept within the limits of an answer. `streams` are read to their end."""

    def __init__(self, processes: "Processes", started: StartedCommand, streams: Sequence[int]) -> None:
        super().__init__(started)
        self._processes = processes
        self._pipes = dict(enumerate(streams))
        self._outputs = [self._new_output() for _ in streams]
        self.tap: Callable[[bytes], None] | None = None
        """Called with output as it comes, in the thread of the background reader."""

    def watch(self) -> None:
        """Begin to read the streams and the channel in the background."""
        reader = self._processes.reader
        for number, fd in list(self._pipes.items()):
            reader.add(fd, partial(self._take, number))
        reader.add(os.dup(self.channel.fileno()), self.take_message)

    def _new_output(self) -> BoundedOutput:
        limits = self._processes.sandbox.settings.limits
        return BoundedOutput(limits.output_bytes, limits.spool_bytes, self._processes.new_spool)

    def _take(self, number: int, chunk: bytes) -> None:
        if self.tap is not None and chunk:
            self.tap(chunk)
        with self.changed:
            if not chunk:
                self._pipes.pop(number, None)
            else:
                self._keep(number, chunk)
            self.changed.notify_all()

    def _keep(self, number: int, chunk: bytes) -> None:
        if self.status is None or self.reads_to_end:  # later output is that of processes that the program left behind
            self._outputs[number].take(chunk)

    def _note_exit(self, facts: list[bytes]) -> None:
        self.read_rest()
        super()._note_exit(facts)

    def read_rest(self) -> None:
        """Read what the pipes hold now, in the thread of the background reader: all that was printed until now."""
        for number, fd in self._pipes.items():
            left = _readable_bytes(fd)
            while left > 0:
                try:
                    chunk = os.read(fd, min(left, 1 << 16))
                except OSError:  # nothing is left, or the terminal has ended
                    break
                if not chunk:
                    break
                self._keep(number, chunk)
                left -= len(chunk)

    def take_outputs(self) -> tuple[Output, Output]:
        """Return output and error since the last time; error is empty if both are one stream."""
        with self.changed:
            taken, self._outputs = self._outputs, [self._new_output() for _ in self._outputs]
        out, *err = [each.finish() for each in taken]
        return out, (err[0] if err else Output(b""))

    @property
    def alive(self) -> bool:
        """True if the program itself runs, or its output is not complete yet."""
        return (self.status is None and "channel" in self.open) or (self.reads_to_end and self._unread)

    @property
    def _unread(self) -> bool:
        return bool(self._pipes) and self.status is not None

    def check_started(self, program: str, directory: str) -> None:
        """Raise CommandNotStarted if the supervisor could not start the program."""
        if self._failed:
            raise CommandNotStarted(program, directory, errno.errorcode.get(self._failed, "EIO"))


class Keyboard:
    """Types into the terminal of a program."""

    def __init__(self, master: int) -> None:
        self._fd = os.dup(master)
        self._unseen = threading.Lock()

    def write(self, data: bytes, seconds: float, program: HeldProgram) -> int:
        """Return the number of bytes that the terminal accepted: fewer if the program does not read them in time."""
        deadline, written = time.monotonic() + seconds, 0
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        while written < len(data) and program.open:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                break
            try:
                written += os.write(self._fd, data[written : written + 1024])
            except BlockingIOError:
                continue
            except OSError:  # no process has the terminal open
                break
        return written

    def fileno(self) -> int:
        """Return our end of the terminal."""
        return self._fd

    def write_unseen(self, data: bytes, seconds: float, program: HeldProgram) -> bool:
        """Type what the output must not show: the terminal echoes nothing meanwhile. Return whether it would have.

        A program that echoes by itself, such as an editor, still prints what it reads.
        """
        with self._unseen:
            echoes = self._set_echo(on=False)
            try:
                self.write(data, seconds, program)
                if echoes:
                    time.sleep(_ECHO_SECONDS)  # the system echoes when it hands the input on
            finally:
                if echoes:
                    self._set_echo(on=True)
        return echoes

    def _set_echo(self, *, on: bool) -> bool:
        """Switch the echo of the terminal; return whether it was on."""
        try:
            now = termios.tcgetattr(self._fd)
            wanted = now[3] | termios.ECHO if on else now[3] & ~termios.ECHO
            termios.tcsetattr(self._fd, termios.TCSANOW, [*now[:3], wanted, *now[4:]])
        except termios.error:  # the program has ended
            return False
        return bool(now[3] & termios.ECHO)

    def answer(self, data: bytes) -> None:
        """Type the answer of the terminal to a query; drop it if the program has not read earlier input."""
        with contextlib.suppress(OSError):
            os.write(self._fd, data)

    def close(self) -> None:
        os.close(self._fd)


def request(
    sandbox: Sandbox,
    argv: Sequence[str],
    cwd: str,
    environment: dict[str, str],
    *,
    terminal: tuple[int, int] | None = None,
    keep_background: bool = False,
) -> dict[str, object]:
    """Return the request that starts a held program."""
    return {
        "argv": [os.fsencode(word) for word in argv],
        "cwd": os.fsencode(os.path.join(sandbox.root, cwd)),
        "additions": {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
        "keep_background": keep_background,
        "grace": sandbox.settings.limits.end_grace_seconds,
        "terminal": terminal,
    }


def wait_for_terminal(
    sandbox: Sandbox, started: StartedCommand, argv: Sequence[str], cwd: str
) -> tuple[int, int, bytes]:
    """Wait until a program runs. Return its terminal, its process, and the message of its end if it came."""
    limit = sandbox.settings.limits.sandbox_start_seconds
    message, handles = _receive(started, limit) or (b"", [])
    word, _, fact = message.partition(b" ")
    if word == b"started" and len(handles) == 2:
        screen, running = handles
        _readable(running, limit)
        os.close(running)
        message, _handles = _receive(started, 0) or (b"", [])
        if not message.startswith(b"failed "):
            return screen, int(fact), message
        os.close(screen)
        word, _, fact = message.partition(b" ")
    started.channel.close()
    why = errno.errorcode.get(int(fact), "EIO") if word == b"failed" else "ECONNRESET"
    raise CommandNotStarted(argv[0], cwd, why)


def _receive(started: StartedCommand, seconds: float) -> tuple[bytes, list[int]] | None:
    return started.channel.receive() if _readable(started.channel.fileno(), seconds) else None


def _readable(fd: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _readable_bytes(fd: int) -> int:
    """Return how many bytes a pipe or terminal holds."""
    count = array.array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]


def numbers(listed: bytes) -> tuple[int, ...]:
    """Return the process numbers that the supervisor lists."""
    return () if listed == b"-" else tuple(int(pid) for pid in listed.split(b","))
