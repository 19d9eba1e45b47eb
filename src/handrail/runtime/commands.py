"""Runs commands and terminals for one call: after approval, in the sandbox, and with a time limit."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.host.session_log import shorten
from handrail.kernel.process.shells import BASH, users_shell
from handrail.kernel.sandbox.denials import explain
from handrail.model.approval import Verdict
from handrail.model.effects import Effect
from handrail.model.faults import AbsoluteDirectory, EmptyCommand, PatchTyped, TerminalEnded
from handrail.model.paths import is_absolute
from handrail.model.warnings import (
    NotAllTyped,
    NotRemembered,
    ProcessesEnded,
    ProcessesLeft,
    ProtectedInToolsOnly,
    SandboxDied,
    SandboxReduced,
    SandboxRefused,
    SandboxRestarted,
)
from handrail.ops.shell.typed_patch import types_patch
from handrail.runtime.session import LastCommand

if TYPE_CHECKING:
    from handrail.kernel.process.runner import CommandOutcome
    from handrail.kernel.process.terminals import Reading, Terminal
    from handrail.kernel.sandbox.sandbox import Confinement
    from handrail.runtime.call import Call

_ABOUT = 200
"""How many characters of a command the journal keeps."""


class Ran(NamedTuple):
    """Holds the outcome of a command."""

    outcome: "CommandOutcome"

    @property
    def returncode(self) -> int:
        """Return the exit code, or, as shells do, 128 plus the number of the signal that ended the command."""
        if self.outcome.exit_code is not None:
            return self.outcome.exit_code
        return 128 + signal.Signals[self.outcome.signal] if self.outcome.signal else -1

    @property
    def status(self) -> int | None:
        """Return the return code; None if a timeout or a cancellation ended the command."""
        return None if self.outcome.timed_out or self.outcome.cancelled else self.returncode


class Commands:
    """Runs commands and terminals for one call."""

    def __init__(self, call: "Call") -> None:
        self._call, self._session = call, call.session

    def run(
        self,
        text: str,
        *,
        directory: str = ".",
        relative_only: bool = False,
        in_users_shell: bool = False,
        seconds: float | None = None,
    ) -> Ran:
        """Run a command in the sandbox after approval; record the files that it changes.

        Processes that the command leaves in the background live until the session ends.
        Raises EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`. With `relative_only`, raises
        AbsoluteDirectory for an absolute directory.
        """
        from handrail.kernel.process.runner import Command  # noqa: PLC0415  most calls run no command

        _refuse_unusable(text)
        if relative_only and is_absolute(directory):
            raise AbsoluteDirectory(directory)
        cwd = self._place(directory)
        verdict = self._ask(text, cwd)
        command = Command(
            [users_shell() if in_users_shell else BASH, "-c", text],
            cwd,
            timeout_seconds=seconds,
            keep_background=True,
            cancel=self._call.cancel,
        )
        started = time.time()
        with self._recorded(text, verdict):
            outcome = self._session.processes.run(command)
        self._warn(outcome)
        ran = Ran(outcome)
        self._session.last_command = LastCommand(text, ran.status, outcome.stdout, outcome.stderr, started)
        return ran

    def start_terminal(self, name: str, text: str, *, directory: str = ".") -> "Reading":
        """Start a command in a new terminal after approval; return its first output.

        Raises EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`.
        """
        _refuse_unusable(text)
        cwd = self._place(directory)
        verdict = self._ask(text, cwd)
        with self._recorded(text, verdict):
            terminal = self._session.terminals.start(name, [BASH, "-c", text], cwd=cwd)
            self._note_sandbox(terminal.confinement, restarted=terminal.restarted)
            return self._read(terminal)

    def type_into(self, name: str, chars: str) -> "Reading":
        """Type characters into a running terminal after approval; return the output that follows.

        Raises TerminalEnded if the program has ended. Only a call that types nothing still gets the last output.
        """
        terminal = self._session.terminals.get(name)
        if not terminal.alive and (chars or terminal.end_read):
            raise self._ended(name, terminal)
        verdict = self._ask(chars, "", name, self._session.named_level(terminal.confinement.level))
        with self._recorded(chars, verdict, goes_on=True):
            written = terminal.write(chars.encode(), self._call.limits.terminal_write_seconds)
            if terminal.alive and written < len(chars.encode()):
                self._call.warnings.append(NotAllTyped(written, len(chars.encode())))
            self._note_sandbox(terminal.confinement, restarted=False)
            return self._read(terminal)

    def _ended(self, name: str, terminal: "Terminal") -> TerminalEnded:
        last = terminal.read(0, 0)
        self._call.metadata.update(alive=False, exit_code=last.exit_code, signal=last.signal)
        output = last.data.decode(errors="replace")
        return TerminalEnded(name, last.exit_code, last.signal or "", output)

    @contextmanager
    def _recorded(self, text: str, verdict: Verdict, *, goes_on: bool = False) -> Iterator[None]:
        """Record the file changes of a command in the journal and as changes of this session."""
        call, services = self._call, self._session.services
        with self._session.seen.own_command(services.reader), self._session.git.around(call.warnings.append) as git:
            if not services.journal.on:
                yield
                return
            origin = call.origin(verdict, "command", about=shorten(text, _ABOUT))
            with services.command_changes.around(
                origin, call.warnings.append, call.files_affected, git, goes_on=goes_on
            ):
                yield

    def _read(self, terminal: "Terminal") -> "Reading":
        limits = self._call.limits
        reading = terminal.read(limits.terminal_wait_seconds, limits.terminal_quiet_seconds)
        if reading.ended_processes:
            self._call.warnings.append(ProcessesEnded(reading.ended_processes))
        return reading

    def _place(self, directory: str) -> str:
        boundary = self._session.services.boundary
        with boundary.directory(directory):  # raises a PathFault if directory not found
            pass
        return self._call.files.stem(directory).rstrip("/")

    def _ask(self, text: str, cwd: str, terminal: str = "", level: str = "") -> Verdict:
        level = level or self._session.next_level()
        return self._call.ask(Effect.RUN, command=text, directory=cwd, terminal=terminal, sandbox=level)

    def _warn(self, outcome: "CommandOutcome") -> None:
        """Add the warnings that an outcome calls for: the sandbox refused something, is reduced, or died."""
        self._note_sandbox(outcome.confinement, restarted=outcome.restarted)
        failed = outcome.exit_code != 0
        stderr = outcome.stderr.head + outcome.stderr.tail
        root = self._session.services.boundary.root
        denials = explain(stderr, failed=failed, limit=outcome.limit, root=root, confinement=outcome.confinement)
        self._call.warnings += [SandboxRefused(denial.kind, denial.path) for denial in denials]
        if outcome.background:
            self._call.warnings.append(ProcessesLeft(sorted(outcome.background)))
        if outcome.sandbox_died:
            self._call.warnings.append(SandboxDied())

    def _note_sandbox(self, confinement: "Confinement", *, restarted: bool) -> None:
        self._call.metadata["sandbox"] = confinement.level
        if confinement.level == "reduced":
            wanted = self._session.services.powers.sandbox
            self._call.warnings.append(SandboxReduced(wanted, "; ".join(confinement.why)))
        if self._session.services.boundary.protected is not None and not confinement.by_bubblewrap:
            self._call.warnings.append(ProtectedInToolsOnly(confinement.level))
        if self._session.services.boundary.protected is not None and (
            trouble := self._session.services.boundary.protected.trouble
        ):
            self._call.warnings.append(NotRemembered(trouble))
        for name in ("cannot_stop", "why", "unguarded"):
            if facts := getattr(confinement, name):
                self._call.metadata[f"sandbox_{name}"] = list(facts)
        if restarted:
            self._call.warnings.append(SandboxRestarted())


def _refuse_unusable(text: str) -> None:
    if not text.strip():
        raise EmptyCommand
    if types_patch(text):
        raise PatchTyped
