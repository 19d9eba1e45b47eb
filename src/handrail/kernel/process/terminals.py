"""Runs programs in terminals inside the sandbox; calls write to them and read them until the workspace closes."""

import math
import os
import re
import select
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

from handrail.kernel.process.awaited_input import awaits_input
from handrail.kernel.process.background_reader import BackgroundReader
from handrail.kernel.process.bounded_output import Output
from handrail.kernel.process.held_program import HeldProgram, Keyboard, request, wait_for_terminal
from handrail.kernel.process.runner import ending_of
from handrail.kernel.process.terminal_answers import TerminalAnswers
from handrail.kernel.sandbox.sandbox import Sandbox, StartedCommand
from handrail.model.terminal_faults import TerminalBusy, TooManyTerminals, UnknownTerminal

_FIRST_LOOK = 0.001
"""The seconds after the last output until a read looks whether the program waits for input; they double each time."""
LINE_END = re.compile(rb"\r+\n")
REMEMBERED = 64
"""The number of ended terminals whose exit status is kept."""

Reason = Literal["quiet", "ended", "seen", "timeout"]
"""Why a read returned: the terminal was quiet, its program ended, the awaited text was printed, or the time was up."""


class Reading(NamedTuple):
    """Holds the output since the last read, with plain line ends."""

    shown: Output
    """The part that an answer shows: all, unless a budget cut it."""
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
    tried_network: bool | None = None
    """True if the program tried to reach a network that the sandbox does not have; None if that is not known."""

    @property
    def data(self) -> bytes:
        """The output as far as it is shown."""
        return self.shown.head + self.shown.tail


class Terminal(HeldProgram):
    """Holds one program with a terminal. The background reader fills it; calls read and write it."""

    def __init__(
        self,
        name: str,
        started: StartedCommand,
        master: int,
        pid: int,
        limit: int,
        size: tuple[int, int],
        reader: BackgroundReader,
    ) -> None:
        super().__init__(started, "screen")
        self._reader = reader
        self.name, self.pid = name, pid
        self._keyboard = Keyboard(master)
        self._answers = TerminalAnswers(size, self._keyboard.answer)
        self._limit = limit
        self._waiting = bytearray()
        self._dropped = 0
        self._last_output = time.monotonic()
        self.tap: Callable[[bytes], None] = lambda _: None
        """Called with output as it comes, and with nothing at the end."""
        self.started_at = time.time()
        self.end_read = False
        """True when a call has returned the exit status."""

    # called by the background reader

    def take_output(self, chunk: bytes) -> None:
        """Keep a chunk of output, within the limit; an empty chunk means that the terminal is closed."""
        self.tap(chunk)
        with self.changed:
            if not chunk:
                self.open.discard("screen")
            self._answers.take(chunk)
            self._waiting += chunk
            excess = len(self._waiting) - self._limit
            if excess > 0:
                del self._waiting[:excess]
                self._dropped += excess
            self._last_output = time.monotonic()
            self.changed.notify_all()

    # called by tools

    @property
    def alive(self) -> bool:
        """True if the program runs or unread output may still arrive."""
        return bool(self.open)

    def write(self, data: bytes, seconds: float) -> int:
        """Type into the terminal. Return the number of bytes it accepted: fewer if the program does not read."""
        return self._keyboard.write(data, seconds, self)

    def type_unseen(self, data: bytes, seconds: float) -> bool:
        """Type for the user; return whether the terminal would have echoed it."""
        return self._keyboard.write_unseen(data, seconds, self)

    def read(self, seconds: float, quiet_seconds: float, until: bytes = b"", *, written: int = 0) -> Reading:
        """Wait until the program ended, printed `until`, or printed and went quiet; at most `seconds`.

        A program that waits for input counts as quiet at once.
        """
        began, pause, looked_after = time.monotonic(), _FIRST_LOOK, 0.0
        while True:
            with self.changed:
                now = time.monotonic()
                quiet_at = self._quiet_at(began, quiet_seconds, until)
                because = self._reason_to_return(until, now=now, quiet_at=quiet_at, end=began + seconds)
                if because is not None:
                    return self._reading(because, written)
                pause = _FIRST_LOOK if looked_after != self._last_output else pause
                look_at = self._quiet_at(began, pause, until)
                if now < look_at:
                    self.changed.wait(max(0.0, min(began + seconds, quiet_at, look_at) - now))
                    continue
                looked_after, pause = self._last_output, pause * 2
            if self._awaits_input():
                with self.changed:
                    if self._last_output == looked_after and self.alive:
                        return self._reading("quiet", written)

    def _awaits_input(self) -> bool:
        """Return whether the program waits for input, and all that it printed has arrived."""
        if not awaits_input(self._keyboard.fileno()):
            return False
        poll = select.poll()
        poll.register(self._keyboard.fileno(), select.POLLIN)
        with self._reader.paused():
            return not poll.poll(0)

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
        code, signal = ending_of(self.status) if self.end_read else (None, None)
        ended = len(self.others) if self.end_read else 0
        shown = Output(LINE_END.sub(b"\n", data))
        tried = self.tried_network(idle=self.end_read)
        return Reading(shown, dropped, because, not self.end_read, code, signal, written, ended, tried)

    def release(self) -> None:
        """Close the handles, which also ends the program."""
        self._keyboard.close()
        super().release()


class Terminals:
    """Holds the terminals of one session by name."""

    def __init__(self, sandbox: Sandbox, printed: Callable[[str, bytes], None] = lambda _name, _chunk: None) -> None:
        """Call `printed` with the name of a terminal and its output as it comes, and with nothing at its end."""
        self._sandbox, self._printed = sandbox, printed
        self._reader = BackgroundReader()
        self._lock = threading.Lock()
        self._all: dict[str, Terminal] = {}

    @property
    def any_busy(self) -> bool:
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
        wanted = request(self._sandbox, argv, cwd, environment, terminal=size)
        started = self._sandbox.begin(wanted)
        master, pid, ended = wait_for_terminal(self._sandbox, started, argv, cwd)
        terminal = Terminal(
            name, started, master, pid, self._sandbox.settings.limits.terminal_bytes, size, self._reader
        )
        if ended:
            terminal.take_message(ended)
        terminal.tap = partial(self._printed, name)
        self._reader.add(master, terminal.take_output)
        self._reader.add(os.dup(started.channel.fileno()), terminal.take_message)
        return terminal

    def list(self) -> "list[Terminal]":
        """Return all terminals that are remembered."""
        with self._lock:
            return [*self._all.values()]

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
        """Release all terminals. The session closes the sandbox next: that ends them."""
        with self._lock:
            for name in list(self._all):
                self._forget(name)
        self._reader.close()
