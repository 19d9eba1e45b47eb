"""Runs programs in terminals inside the sandbox; calls write to them and read them until the workspace closes."""

import errno
import math
import os
import re
import select
import threading
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

from handrail.kernel.process.background_reader import BackgroundReader
from handrail.kernel.process.runner import ending_of
from handrail.kernel.sandbox.sandbox import Channel, Confinement, Sandbox, StartedCommand
from handrail.model.faults import CommandNotStarted, TerminalBusy, TooManyTerminals, UnknownTerminal

LINE_END = re.compile(rb"\r+\n")
REMEMBERED = 64
"""The number of ended terminals whose exit status is kept."""

Reason = Literal["quiet", "ended", "seen", "timeout"]
"""Why a read returned: the terminal was quiet, its program ended, the awaited text was printed, or the time was up."""


class Reading(NamedTuple):
    """Holds the output since the last read, with plain line ends."""

    data: bytes
    dropped_bytes: int
    """The number of older bytes that no call read in time."""
    because: Reason
    alive: bool
    exit_code: int | None
    signal: str | None
    written: int = 0
    """The number of typed bytes that the terminal accepted."""
    ended_processes: int = 0
    """The number of background processes that ended together with the program."""


class Terminal:
    """Holds one program with a terminal. The background reader fills it; calls read and write it."""

    def __init__(self, name: str, started: StartedCommand, master: int, pid: int, limit: int) -> None:
        self.name, self.pid = name, pid
        self.confinement: Confinement = started.confinement
        self.restarted = started.restarted
        self._channel: Channel = started.channel
        self._keyboard = os.dup(master)
        self._limit = limit
        self._changed = threading.Condition()
        self._waiting = bytearray()
        self._dropped = 0
        self._last_output = time.monotonic()
        self._status: int | None = None
        self._ended_processes = 0
        self._open = {"screen", "channel"}
        """The sources from which something may still arrive."""
        self.end_read = False
        """True when a call has returned the exit status."""

    # called by the background reader

    def take_output(self, chunk: bytes) -> None:
        """Keep a chunk of output, within the limit; an empty chunk means that the terminal is closed."""
        with self._changed:
            if not chunk:
                self._open.discard("screen")
            self._waiting += chunk
            excess = len(self._waiting) - self._limit
            if excess > 0:
                del self._waiting[:excess]
                self._dropped += excess
            self._last_output = time.monotonic()
            self._changed.notify_all()

    def take_message(self, message: bytes) -> None:
        """Note what the supervisor reports; an empty message means that the channel is closed."""
        with self._changed:
            if message.startswith(b"exit "):
                _, _, status, pids, _ = message.split(b" ")
                self._status, self._ended_processes = int(status), 0 if pids == b"-" else pids.count(b",") + 1
            if not message:
                self._open.discard("channel")
                if self._status is None:  # the sandbox died with everything in it
                    self._open.clear()
            self._changed.notify_all()

    # called by tools

    @property
    def alive(self) -> bool:
        """Whether the program runs or unread output may still arrive."""
        return bool(self._open)

    def write(self, data: bytes, seconds: float) -> int:
        """Type into the terminal. Return the number of bytes it accepted: fewer if the program does not read."""
        deadline, written = time.monotonic() + seconds, 0
        poller = select.poll()
        poller.register(self._keyboard, select.POLLOUT)
        while written < len(data) and self.alive:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                break
            try:
                written += os.write(self._keyboard, data[written : written + 1024])
            except BlockingIOError:
                continue
            except OSError:  # no process has the terminal open
                break
        return written

    def read(self, seconds: float, quiet_seconds: float, until: bytes = b"", *, written: int = 0) -> Reading:
        """Wait until the program ended, printed `until`, or printed and went quiet; at most `seconds`."""
        began = time.monotonic()
        with self._changed:
            while True:
                now = time.monotonic()
                quiet_at = self._quiet_at(began, quiet_seconds, until)
                because = self._reason_to_return(until, now=now, quiet_at=quiet_at, end=began + seconds)
                if because is not None:
                    return self._reading(because, written)
                self._changed.wait(max(0.0, min(began + seconds, quiet_at) - now))

    def _quiet_at(self, began: float, quiet_seconds: float, until: bytes) -> float:
        """Return when the terminal counts as quiet; never, if nothing was printed or a text is awaited."""
        return max(self._last_output, began) + quiet_seconds if self._waiting and not until else math.inf

    def _reason_to_return(self, until: bytes, *, now: float, quiet_at: float, end: float) -> Reason | None:
        if not self.alive:
            return "ended"
        if until and until in LINE_END.sub(b"\n", bytes(self._waiting)):
            return "seen"
        if now >= quiet_at:
            return "quiet"
        return "timeout" if now >= end else None

    def _reading(self, because: Reason, written: int) -> Reading:
        """Take the output that was collected."""
        data = bytes(self._waiting)
        # A carriage return at the end may be the first half of a line end.
        held = len(data) - len(data.rstrip(b"\r")) if self.alive else 0
        data, rest = (data[:-held], data[-held:]) if held else (data, b"")
        dropped, self._dropped = self._dropped, 0
        self._waiting[:] = rest
        self.end_read = not self.alive
        code, signal = ending_of(self._status) if self.end_read else (None, None)
        ended = self._ended_processes if self.end_read else 0
        return Reading(LINE_END.sub(b"\n", data), dropped, because, not self.end_read, code, signal, written, ended)

    def end(self, seconds: float) -> None:
        """Ask the supervisor to end all processes of the terminal, and wait at most `seconds` for that."""
        self._channel.end()
        with self._changed:
            self._changed.wait_for(lambda: "channel" not in self._open, seconds)

    def release(self) -> None:
        """Close the handles, which also ends the program."""
        os.close(self._keyboard)
        self._channel.close()


class Terminals:
    """Holds the terminals of one session by name."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._reader = BackgroundReader()
        self._lock = threading.Lock()
        self._all: dict[str, Terminal] = {}

    @property
    def any_alive(self) -> bool:
        with self._lock:
            return any(terminal.alive for terminal in self._all.values())

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cwd: str = "",
        environment: dict[str, str] | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> Terminal:
        """Start a program in a new terminal. Raises TerminalBusy, TooManyTerminals and CommandNotStarted."""
        limits = self._sandbox.settings.limits
        with self._lock:
            living = [terminal for terminal in self._all.values() if terminal.alive]
            if name in self._all and self._all[name].alive:
                raise TerminalBusy(name)
            if len(living) >= limits.terminals:
                raise TooManyTerminals(name, limits.terminals)
            self._forget(name)
            for old in [n for n, t in self._all.items() if not t.alive][:-REMEMBERED]:
                self._forget(old)
            terminal = self._all[name] = self._begin(name, argv, cwd, environment or {}, size)
        return terminal

    def _begin(
        self, name: str, argv: Sequence[str], cwd: str, environment: dict[str, str], size: tuple[int, int]
    ) -> Terminal:
        limits = self._sandbox.settings.limits
        request = {
            "argv": [os.fsencode(word) for word in argv],
            "cwd": os.fsencode(os.path.join(self._sandbox.root, cwd)),
            "additions": {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
            "keep_background": False,
            "grace": limits.end_grace_seconds,
            "terminal": size,
        }
        started = self._sandbox.begin(request)
        master, pid, ended = self._wait_for_start(started, argv, cwd)
        terminal = Terminal(name, started, master, pid, limits.terminal_bytes)
        if ended:
            terminal.take_message(ended)
        self._reader.add(master, terminal.take_output)
        self._reader.add(os.dup(started.channel.fileno()), terminal.take_message)
        return terminal

    def _wait_for_start(self, started: StartedCommand, argv: Sequence[str], cwd: str) -> tuple[int, int, bytes]:
        """Wait until the program runs. Return its terminal, its process, and the message of its end if it came."""
        message, handles = self._receive(started) or (b"", [])
        word, _, fact = message.partition(b" ")
        if word == b"started" and len(handles) == 2:
            screen, running = handles
            self._readable(running)
            os.close(running)
            message, _handles = self._receive(started, seconds=0) or (b"", [])
            if not message.startswith(b"failed "):
                return screen, int(fact), message
            os.close(screen)
            word, _, fact = message.partition(b" ")
        started.channel.close()
        why = errno.errorcode.get(int(fact), "EIO") if word == b"failed" else "ECONNRESET"
        raise CommandNotStarted(argv[0], cwd, why)

    def _receive(self, started: StartedCommand, seconds: float | None = None) -> tuple[bytes, list[int]] | None:
        return started.channel.receive() if self._readable(started.channel.fileno(), seconds) else None

    def _readable(self, fd: int, seconds: float | None = None) -> bool:
        limit = self._sandbox.settings.limits.sandbox_start_seconds if seconds is None else seconds
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(limit * 1000))

    def get(self, name: str) -> Terminal:
        """Return a terminal. Raises UnknownTerminal."""
        with self._lock:
            if name not in self._all:
                raise UnknownTerminal(name)
            return self._all[name]

    def end(self, name: str) -> None:
        """End one terminal and everything that it started."""
        self.get(name).end(self._sandbox.settings.limits.end_patience_seconds)
        with self._lock:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._all:
            self._all.pop(name).release()

    def close(self) -> None:
        """Release all terminals; to close their sandbox ends them."""
        with self._lock:
            for name in list(self._all):
                self._forget(name)
        self._reader.close()
