"""Keeps a bash that remembers: directory, variables and functions stay from one command to the next.

Bash reads one line for each command from a pipe. The line evaluates the command as one quoted word, so that no text of
a command can reach beyond it, with an empty input. Then it reports a random mark and the exit code on a pipe of its
own. While the command runs, that pipe and the pipe with the lines are closed for it and for its children. So:

- The end of a command is the arrival of its mark. What was printed before is in the output pipes by then.
- A command that closes the pipe, or replaces the shell, closes the last writer. Then the lines end too, and the shell
  with them; the supervisor reports its exit.
- A command that finds its own mark and reports an end that did not happen is caught: the true end sends the mark a
  second time, which ends the shell with everything that it started.
"""

import os
import secrets
import select
import shlex
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.kernel.process.held_program import OutputProgram, numbers, request
from handrail.kernel.process.runner import CANCEL_POLL_SECONDS, CommandOutcome, ending_of
from handrail.kernel.process.shells import BASH, is_bash
from handrail.kernel.sandbox.sandbox import StartedCommand
from handrail.model.faults import CommandNotStarted
from handrail.model.job_faults import ShellEnded
from handrail.model.limits import DAY

if TYPE_CHECKING:
    from handrail.kernel.process.runner import Processes

_REPORTS, _REPORTS_OF_SH = 199, 9
"""The handles in a bash, and in another shell, on which it reports; commands use low numbers."""
_REPORT_BYTES = 1024
"""No report of the shell itself is longer."""
_ENVIRONMENT = {"PS1": "", "PS2": "", "TERM": "dumb"}
_LOOK_SECONDS = 2.0


class RememberedShell(OutputProgram):
    """Runs commands one after the other in one bash. Only one thread may run a command at a time: hold `turn`."""

    def __init__(
        self,
        name: str,
        processes: "Processes",
        started: StartedCommand,
        streams: Sequence[int],
        ends: tuple[int, int],
        shell: str,
    ) -> None:
        """Take a started shell. `ends` are the pipes of the lines to it and of its reports; `shell` is its path."""
        super().__init__(processes, started, streams)
        self.name, self.why_ended = name, "exited"
        self.turn = threading.Lock()
        self.changes_words = False
        """True if a command may have changed what later words mean: a function, an alias, a variable."""
        self.forged = False
        """True if a command reported an end that did not happen."""
        self.children: tuple[int, ...] = ()
        """The processes that the commands have left, at the last look."""
        self._told: tuple[int, ...] = ()
        self.directory = ""
        self._lines, self._reports = ends
        self._shell = shell
        self._report = b""
        self._mark = b""
        self._exit_code: int | None = None
        self._looks = 0

    def watch(self) -> None:
        super().watch()
        self._processes.reader.add(self._reports, self._take_report)

    def not_yet_told(self, processes: tuple[int, ...]) -> tuple[int, ...]:
        """Return those processes of the last look that no answer has named; from now on they count as named."""
        told, self._told = self._told, processes
        return tuple(each for each in processes if each not in told)

    # called by the background reader

    def _take_report(self, chunk: bytes) -> None:
        with self.changed:
            self._report += chunk
            *lines, self._report = self._report.split(b"\n")
            for line in lines:
                self._note_end(line)
            if len(self._report) > _REPORT_BYTES:
                self._end_forged()
            if not chunk:  # the shell cannot report any more
                self._close_lines()
            self.changed.notify_all()

    def _note_end(self, line: bytes) -> None:
        mark, _, code = line.partition(b" ")
        if mark != self._mark or not code.isdigit():
            self._end_forged()
            return
        self.read_rest()
        self._exit_code, self._mark = int(code), b""

    def _end_forged(self) -> None:
        """End the shell, because a command has written to its pipe."""
        self.forged = True
        self.channel.end()

    def _note_look(self, facts: list[bytes]) -> None:
        pids, directory = facts
        self.children = numbers(pids)
        self.directory = os.fsdecode(directory)
        self._looks += 1

    def _close_lines(self) -> None:
        if self._lines >= 0:
            os.close(self._lines)
            self._lines = -1

    # called by tools

    def look(self) -> None:
        """Ask the supervisor which processes and which directory the shell has now."""
        with self.changed:
            before = self._looks
            self.channel.look()
            self.changed.wait_for(lambda: self._looks > before or not self.alive, _LOOK_SECONDS)

    @property
    def busy(self) -> bool:
        """True if processes run that a finished command has left."""
        if not self.alive:
            return False
        self.look()
        return bool(self.children)

    def run(self, text: str, seconds: float, cancel: threading.Event | None = None) -> CommandOutcome:
        """Run a command to its end. A timeout or a cancellation ends the shell and everything that it started."""
        began, mark = time.monotonic(), secrets.token_hex(16).encode()
        if "\0" in text:
            raise CommandNotStarted(self._shell, self.directory, "EINVAL")
        with self.changed:
            self._mark, self._exit_code = mark, None
        self.tried_network()
        alone = not self.children
        finished = self._send(_line(text, mark, self._shell), began + seconds) and self._wait(began + seconds, cancel)
        cancelled = not finished and cancel is not None and cancel.is_set()
        if not finished or self.forged:
            self.end_surely(self._processes.sandbox)
        elif self.alive:
            self.look()
        self.why_ended = "cancelled" if cancelled else "exited" if finished else "timeout"
        tried = self.tried_network(idle=not self.children)
        outcome = self._outcome(began, timed_out=not finished and not cancelled, cancelled=cancelled)
        return outcome._replace(tried_network=tried if alone or not tried else None)

    @property
    def ending(self) -> ShellEnded:
        """The fault that says how the shell has ended."""
        why = "forged" if self.forged else "sandbox" if self.lost else self.why_ended
        code, signal = ending_of(self.status)
        return ShellEnded(self.name, why, code, signal or "")

    def _send(self, line: bytes, deadline: float) -> bool:
        """Write a line to the shell. Return False if the shell does not read it in time."""
        while line:
            with self.changed:
                if self._lines < 0 or not self.alive:
                    return True  # the shell has ended: there is nothing to wait for
                try:
                    line = line[os.write(self._lines, line) :]
                    continue
                except BlockingIOError:
                    lines = self._lines
                except BrokenPipeError:
                    return True
            poller = select.poll()
            poller.register(lines, select.POLLOUT)
            if not poller.poll(min(max(0.0, deadline - time.monotonic()), DAY) * 1000):
                return False
        return True

    def _wait(self, deadline: float, cancel: threading.Event | None) -> bool:
        """Wait for the end of the command or of the shell. Return False if the time is up or the call cancelled."""
        with self.changed:
            while self.alive and self._exit_code is None:
                left = deadline - time.monotonic()
                if left <= 0 or (cancel is not None and cancel.is_set()):
                    return False
                self.changed.wait(min(left, DAY if cancel is None else CANCEL_POLL_SECONDS))
        return True

    def _outcome(self, began: float, *, timed_out: bool, cancelled: bool) -> CommandOutcome:
        out, err = self.take_outputs()
        ended = self._exit_code is None or not self.alive
        code, signal = ending_of(self.status) if ended else (self._exit_code, None)
        restarted, self.restarted = self.restarted, False
        return CommandOutcome(
            stdout=out,
            stderr=err,
            exit_code=code,
            signal=signal,
            timed_out=timed_out,
            cancelled=cancelled,
            background=self.children if self.alive else (),
            pgid=None,
            limit=self.limit,
            tried_network=None,
            sandbox_died=self.lost,
            restarted=restarted,
            confinement=self.confinement,
            seconds=time.monotonic() - began,
        )

    def release(self) -> None:
        with self.changed:
            self._close_lines()
        super().release()


class Shells:
    """Holds the shells of one session by name, also those that have ended, until they are restarted."""

    def __init__(self, processes: "Processes", shell: str = BASH) -> None:
        """`shell` is the path of the program that remembers."""
        self._processes, self._shell = processes, shell
        self._lock = threading.Lock()
        self._all: dict[str, RememberedShell] = {}

    def get(self, name: str, *, merged: bool) -> RememberedShell:
        """Return a shell, which may have ended; start it at its first use. `merged` makes one stream of both."""
        with self._lock:
            if name not in self._all:
                self._all[name] = self._begin(name, merged=merged)
            return self._all[name]

    def find(self, name: str) -> RememberedShell | None:
        """Return a shell that was started before."""
        return self._all.get(name)

    def drop(self, name: str) -> None:
        """End a shell and everything that it started; its next use starts a new one."""
        with self._lock:
            shell = self._all.pop(name, None)
        if shell is not None:
            if shell.alive:
                shell.end_surely(self._processes.sandbox)
            shell.release()

    @property
    def any_busy(self) -> bool:
        return any(shell.busy for shell in list(self._all.values()))

    def close(self) -> None:
        """Let running calls return, and release all shells. The session closes the sandbox next: that ends them."""
        with self._lock:
            for shell in self._all.values():
                shell.abandon()
                shell.release()
            self._all = {}

    def _begin(self, name: str, *, merged: bool) -> RememberedShell:
        sandbox = self._processes.sandbox
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3 if merged else 4)]
        (their_lines, lines), (reports, their_reports), *outputs = pipes
        theirs = [their_lines, *(each[1] for each in (outputs * 2)[:2]), their_reports]
        try:
            options = ["--noprofile", "--norc"] if is_bash(self._shell) else []
            wanted = request(sandbox, [self._shell, *options], "", _ENVIRONMENT)
            started = sandbox.begin(wanted, *theirs)
        except BaseException:
            for fd in (lines, reports, *(each[0] for each in outputs)):
                os.close(fd)
            raise
        finally:
            for fd in set(theirs):
                os.close(fd)
        os.set_blocking(lines, False)
        os.write(lines, b"exec %d>&3 3>&-\n" % _reports(self._shell))
        ours = [each[0] for each in outputs]
        shell = RememberedShell(name, self._processes, started, ours, (lines, reports), self._shell)
        shell.watch()
        shell.tried_network(idle=True)
        return shell


def _reports(shell: str) -> int:
    return _REPORTS if is_bash(shell) else _REPORTS_OF_SH


def _line(text: str, mark: bytes, shell: str) -> bytes:
    """Return the line that evaluates a command with an empty input and then reports its mark and its exit code."""
    quoted, reports = os.fsencode(shlex.quote(text)), _reports(shell)
    evaluate, own = (b"builtin eval --", b"builtin") if is_bash(shell) else (b"command eval", b"command")
    line = b"%s %s </dev/null %d>&-; %s printf '%s %%d\\n' $? >&%d\n"
    return line % (evaluate, quoted, reports, own, mark, reports)
