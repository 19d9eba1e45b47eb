"""Long-running terminals: started inside the sandbox, read when someone asks, ended with the workspace."""

import contextlib
import errno
import os
import re
import select
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from handrail.kernel.process.background_reader import Pump
from handrail.kernel.process.runner import ending_of
from handrail.kernel.sandbox.sandbox import Channel, Confinement, Sandbox, StartedCommand
from handrail.model.faults import CommandNotStarted, TerminalBusy, TooManyTerminals, UnknownTerminal

LINE_END = re.compile(rb"\r+\n")
REMEMBERED = 64
"""Ended sessions whose exit status can still be asked for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """New output since the last reading, with plain line ends."""

    data: bytes
    dropped_bytes: int
    """Older output that nobody read in time."""
    because: Literal["quiet", "ended", "seen", "timeout"]
    alive: bool
    exit_code: int | None
    signal: str | None
    written: int = 0
    """How much of what was to be typed the terminal took."""


class Terminal:
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
        self._open = {"screen", "channel"}
        """What may still bring news."""

    # the pump's side

    def take_output(self, chunk: bytes) -> None:
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
        with self._changed:
            if message.startswith(b"exit "):
                self._status = int(message.split(b" ")[2])
            if not message:
                self._open.discard("channel")
                if self._status is None:  # the sandbox died, and everything in it
                    self._open.clear()
            self._changed.notify_all()

    # the caller's side

    @property
    def alive(self) -> bool:
        return bool(self._open)

    def write(self, data: bytes, seconds: float) -> int:
        """Type. Returns how much was taken; less than all if the program does not read, or ended."""
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
            except OSError:  # no process has the terminal open any more
                break
        return written

    def read(self, seconds: float, quiet_seconds: float, until: bytes = b"", *, written: int = 0) -> Reading:
        """Wait until it ended, `until` was printed, or it printed and went quiet; at most `seconds`."""
        began = time.monotonic()
        with self._changed:
            while True:
                now = time.monotonic()
                if not self.alive:
                    because: Literal["quiet", "ended", "seen", "timeout"] = "ended"
                elif until and until in LINE_END.sub(b"\n", bytes(self._waiting)):
                    because = "seen"
                elif not until and self._waiting and now - max(self._last_output, began) >= quiet_seconds:
                    because = "quiet"
                elif now - began >= seconds:
                    because = "timeout"
                else:
                    quiet_at = max(self._last_output, began) + quiet_seconds
                    wake = min(began + seconds, quiet_at) if self._waiting and not until else began + seconds
                    self._changed.wait(max(0.0, wake - now))
                    continue
                return self._reading(because, written)

    def _reading(self, because: Literal["quiet", "ended", "seen", "timeout"], written: int) -> Reading:
        data = bytes(self._waiting)
        # A carriage return at the very end may be half of a line end.
        held = len(data) - len(data.rstrip(b"\r")) if self.alive else 0
        data, rest = (data[:-held], data[-held:]) if held else (data, b"")
        dropped, self._dropped = self._dropped, 0
        self._waiting[:] = rest
        code, signal = ending_of(self._status) if not self.alive else (None, None)
        return Reading(LINE_END.sub(b"\n", data), dropped, because, self.alive, code, signal, written)

    def resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(OSError):  # it has just ended
            termios.tcsetwinsize(self._keyboard, (rows, columns))

    def end(self, seconds: float) -> None:
        """Ask the supervisor to end the whole tree and wait for it."""
        self._channel.end()
        with self._changed:
            self._changed.wait_for(lambda: "channel" not in self._open, seconds)

    def release(self) -> None:
        os.close(self._keyboard)
        self._channel.close()


class Terminals:
    def __init__(self, sandbox: Sandbox, pump: Pump | None = None) -> None:
        self._sandbox = sandbox
        self._pump = pump or Pump()
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
        master, pid, ended = self._first_word(started, argv, cwd)
        terminal = Terminal(name, started, master, pid, limits.terminal_bytes)
        if ended:
            terminal.take_message(ended)
        self._pump.add(master, terminal.take_output)
        self._pump.add(os.dup(started.channel.fileno()), terminal.take_message)
        return terminal

    def _first_word(self, started: StartedCommand, argv: Sequence[str], cwd: str) -> tuple[int, int, bytes]:
        """The terminal and its process once the program really runs, and its end if that has come already."""
        message, handles = self._hear(started) or (b"", [])
        word, _, fact = message.partition(b" ")
        if word == b"started" and len(handles) == 2:
            screen, begun = handles
            self._readable(begun)
            os.close(begun)
            message, _handles = self._hear(started, seconds=0) or (b"", [])
            if not message.startswith(b"failed "):
                return screen, int(fact), message
            os.close(screen)
            word, _, fact = message.partition(b" ")
        started.channel.close()
        why = errno.errorcode.get(int(fact), "EIO") if word == b"failed" else "ECONNRESET"
        raise CommandNotStarted(argv[0], cwd, why)

    def _hear(self, started: StartedCommand, seconds: float | None = None) -> tuple[bytes, list[int]] | None:
        return started.channel.receive() if self._readable(started.channel.fileno(), seconds) else None

    def _readable(self, fd: int, seconds: float | None = None) -> bool:
        limit = self._sandbox.settings.limits.sandbox_start_seconds if seconds is None else seconds
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(limit * 1000))

    def get(self, name: str) -> Terminal:
        with self._lock:
            if name not in self._all:
                raise UnknownTerminal(name)
            return self._all[name]

    def end(self, name: str) -> None:
        """End one session and everything it started."""
        self.get(name).end(self._sandbox.settings.limits.end_patience_seconds)
        with self._lock:
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self._all:
            self._all.pop(name).release()

    def close(self) -> None:
        """Let go of all sessions; closing their sandbox ends them."""
        with self._lock:
            for name in list(self._all):
                self._forget(name)
        self._pump.close()
