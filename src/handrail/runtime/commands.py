"""Runs commands and terminals for one call: after approval, in the sandbox, and with a time limit."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.host.session_log import shorten
from handrail.kernel.process.bounded_output import shares
from handrail.kernel.process.shells import users_shell
from handrail.kernel.sandbox.denials import Printed, explain, lacks_git_identity
from handrail.model.approval import Verdict
from handrail.model.effects import Effect
from handrail.model.faults import AbsoluteDirectory, Closed
from handrail.model.paths import is_absolute, quote
from handrail.model.rights import Rights
from handrail.model.terminal_faults import TerminalEnded
from handrail.model.warnings import (
    GitIdentityMissing,
    HostRefused,
    NotAllTyped,
    NotRemembered,
    OutputCut,
    ProcessesEnded,
    ProcessesLeft,
    ProtectedInToolsOnly,
    SandboxDied,
    SandboxReduced,
    SandboxRefused,
    SandboxRestarted,
)
from handrail.runtime.command_checks import LastCommand, check_command

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from handrail.kernel.process.bounded_output import Output
    from handrail.kernel.process.remembered_shell import RememberedShell
    from handrail.kernel.process.runner import CommandOutcome
    from handrail.kernel.process.terminals import Reading, Terminal
    from handrail.kernel.sandbox.sandbox import Confinement
    from handrail.model.job_faults import ShellEnded
    from handrail.runtime.call import Call

_NO_RIGHTS = Rights()
_ABOUT = 200
"""The most characters of a command that the journal keeps."""


_TURN_SECONDS = 0.05
UNASKED = Verdict(True, "an earlier call")
"""Decides on calls that only read or end what an approved call has started."""
_CHANGED = "a command in a shell that an earlier command may have changed"


class Ran(NamedTuple):
    """Holds the outcome of a command."""

    outcome: "CommandOutcome"
    shell_ended: "ShellEnded | None" = None
    """The end of the shell, if the command ran in a shell that remembers and that shell ended with it."""

    @property
    def returncode(self) -> int:
        """Return the exit code, or, as shells do, 128 plus the number of the signal that ended the command."""
        found = self.outcome.returncode
        return -1 if found is None else found

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
        merged: bool = False,
        bounded: bool = True,
    ) -> Ran:
        """Run a command in the sandbox after approval; record the files that it changes.

        Processes that the command leaves in the background live until the session ends.
        Raises EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`. With `relative_only`, raises
        AbsoluteDirectory for an absolute directory. `merged` makes one stream, `stdout`, of output and error.
        `bounded` keeps the answer within `answer_tokens`; otherwise the dialect has a limit of its own.
        """
        check_command(self._call, text)
        if relative_only and is_absolute(directory):
            raise AbsoluteDirectory(directory)
        cwd = self.place(directory)
        on_host = self._session.services.image is None
        shell = users_shell() if in_users_shell and on_host else self._session.shell
        return self._carry_out(text, self.ask(text, cwd), cwd, shell, seconds, merged=merged, parts=int(bounded))

    def run_all(self, texts: list[str], *, seconds: float | None = None) -> list[Ran]:
        """Ask for every command first, then run one after the other; each has the time limit for itself."""
        for text in texts:
            check_command(self._call, text)
        verdicts = [self.ask(text, "") for text in texts]
        run = partial(self._carry_out, cwd="", shell=self._session.shell, seconds=seconds, parts=len(texts))
        return [run(text, verdict) for text, verdict in zip(texts, verdicts, strict=True)]

    def _carry_out(
        self,
        text: str,
        verdict: Verdict,
        cwd: str,
        shell: str,
        seconds: float | None,
        *,
        merged: bool = False,
        parts: int = 1,
    ) -> Ran:
        """Run an approved command and record what it changes.

        `parts` commands share the budget of the answer; 0 if it has none.
        """
        from handrail.kernel.process.runner import Command  # noqa: PLC0415  most calls run no command

        command = Command(
            [shell, "-c", text],
            cwd,
            timeout_seconds=seconds,
            merged=merged,
            keep_background=True,
            cancel=self._call.cancel,
            tap=self._call.tap,
        )
        started = time.time()
        with self.recorded(text, verdict), self._session.part("sandbox.exec") as span:
            outcome = self._session.processes.run(command)
            self.describe(span, outcome)
        self.warn(text, outcome, cwd, merged=merged)
        outcome = self._within_budget(outcome, parts) if parts else outcome
        ran = Ran(outcome)
        self._session.last_command = LastCommand(text, ran.status, outcome.stdout, outcome.stderr, started)
        return ran

    def run_in_shell(self, name: str, text: str, *, seconds: float | None = None, merged: bool = False) -> Ran:
        """Run a command after approval in the session's bash of this name, which keeps its state between calls.

        The first use starts the shell in the root. `merged` makes one stream, `stdout`, of output and error. A timeout
        or a cancellation ends the shell and everything that it started. Raises ShellEnded, without running anything, if
        the shell has ended before; EmptyCommand and PatchTyped as `run`.
        """
        from handrail.ops.shell.lasting import may_last  # noqa: PLC0415  only for shells that remember

        check_command(self._call, text)
        self._call.end_trial()
        shell = self._session.shells.get(name, merged=merged)
        with self._turn(shell):
            self._session.sandbox.cover()
            shell.look()
            if not shell.alive:
                raise shell.ending
            about = _CHANGED if shell.changes_words else ""
            directory = shell.directory
            verdict = self.ask(text, self._shown_directory(directory), shell=about)
            started = time.time()
            limit = self._call.limits.command_seconds if seconds is None else seconds
            with self.recorded(text, verdict), self._session.part("sandbox.exec") as span:
                shell.tap = self._call.tap
                outcome = shell.run(text, limit, self._call.cancel)
                self.describe(span, outcome)
            shell.changes_words = shell.changes_words or may_last(text)
            outcome = outcome._replace(background=shell.not_yet_told(outcome.background))
        self.warn(text, outcome, directory, merged=merged)
        ran = Ran(outcome, None if shell.alive else shell.ending)
        if ran.shell_ended and shell.others:
            self._call.warnings.append(ProcessesEnded(len(shell.others)))
        self._session.last_command = LastCommand(text, ran.status, outcome.stdout, outcome.stderr, started)
        return ran

    def describe(self, span: "Span | None", outcome: "CommandOutcome") -> None:
        """Add the facts of a command that ran to its span."""
        if span:
            known = {"exit_code": outcome.exit_code, "signal": outcome.signal, "timed_out": outcome.timed_out}
            size = outcome.stdout.total_bytes + outcome.stderr.total_bytes
            known |= {"level": outcome.confinement.level, "bytes": size}
            span.set_attributes({f"handrail.sandbox.{key}": value for key, value in known.items() if value is not None})

    def restart_shell(self, name: str) -> None:
        """End a shell that remembers, with everything that it started; its next use starts a new one."""
        self._call.end_trial()
        with self.recorded("(restart of the shell)", UNASKED, goes_on=True):
            self._session.shells.drop(name)

    @contextmanager
    def _turn(self, shell: "RememberedShell") -> Iterator[None]:
        """Wait until no other call uses a shell."""
        while not shell.turn.acquire(timeout=_TURN_SECONDS):
            self._call.check_cancelled()
            if self._session.open_calls.closed:
                raise Closed
        try:
            yield
        finally:
            shell.turn.release()

    def _shown_directory(self, directory: str) -> str:
        """Return a directory of a shell as questions show it: relative to the root if it is inside."""
        inside = directory == self._call.root or directory.startswith(self._call.stem)
        return quote(directory[len(self._call.stem) :]) if inside else quote(directory)

    def start_terminal(self, name: str, text: str, *, directory: str = ".") -> "Reading":
        """Start a command in a new terminal after approval; return its first output.

        Raises EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`.
        """
        check_command(self._call, text)
        cwd = self.place(directory)
        verdict = self.ask(text, cwd)
        with self.recorded(text, verdict):
            terminal = self._session.terminals.start(name, [self._session.shell, "-c", text], cwd=cwd)
            self.note_sandbox(terminal.confinement, restarted=terminal.restarted)
            return self._read(terminal, text, cwd)

    def type_into(self, name: str, chars: str) -> "Reading":
        """Type characters into a running terminal after approval; return the output that follows.

        Raises TerminalEnded if the program has ended. Only a call that types nothing still gets the last output.
        """
        terminal = self._session.terminals.get(name)
        self._call.end_trial()
        if not terminal.alive and (chars or terminal.end_read):
            raise self._ended(name, terminal)
        verdict = self.ask(chars, "", terminal=name, level=self._session.named_level(terminal.confinement.level))
        with self.recorded(chars, verdict, goes_on=True):
            written = terminal.write(chars.encode(), self._call.limits.terminal_write_seconds)
            if terminal.alive and written < len(chars.encode()):
                self._call.warnings.append(NotAllTyped(written, len(chars.encode())))
            self.note_sandbox(terminal.confinement, restarted=False)
            return self._read(terminal, chars)

    def _ended(self, name: str, terminal: "Terminal") -> TerminalEnded:
        last = terminal.read(0, 0)
        self._call.metadata.update(alive=False, exit_code=last.exit_code, signal=last.signal)
        output = last.data.decode(errors="replace")
        return TerminalEnded(name, last.exit_code, last.signal or "", output)

    @contextmanager
    def recorded(
        self, text: str, verdict: Verdict, *, goes_on: bool = False, rights: Rights = _NO_RIGHTS
    ) -> Iterator[None]:
        """Record the file changes of a command in the journal and as changes of this session.

        `rights` are those that the command has beyond the sandbox; history, log and metadata name them.
        """
        call, services = self._call, self._session.services
        if rights:
            call.metadata["rights"] = list(rights.words)
            self._session.note("rights", {"command": text, "rights": list(rights.words), "by": verdict.decided_by})
            text = f"{shorten(text, _ABOUT // 2)} (with {', '.join(rights.words)})"
        with (
            self._hosts_noted(),
            self._session.seen.own_command(services.reader, text),
            self._session.git.around(call.warnings.append) as git,
        ):
            if not services.journal.on:
                yield
                return
            origin = call.origin(verdict, "command", about=shorten(text, _ABOUT))
            warn, affected, busy = call.warnings.append, call.files_affected, self._session.is_busy
            with services.command_changes.around(origin, warn, affected, git, busy=busy, goes_on=goes_on):
                yield

    @contextmanager
    def _hosts_noted(self) -> Iterator[None]:
        """Warn about connections that the proxy refuses meanwhile, once a host and reason; remember the hosts."""
        before = self._session.connections.refusals
        yield
        refused = self._session.connections.refused_since(before)
        hosts = dict.fromkeys((str(each.site or ""), each.refused, each.detail) for each in refused)
        self._call.warnings += [HostRefused(*each) for each in hosts]
        if named := tuple(host for host, why, _ in hosts if why == "not_named"):
            self._session.refused_hosts = named

    def _read(self, terminal: "Terminal", text: str, cwd: str = "") -> "Reading":
        limits = self._call.limits
        reading = terminal.read(limits.terminal_wait_seconds, limits.terminal_quiet_seconds)
        failed = None if reading.alive else reading.exit_code != 0
        printed = Printed(reading.data, command=text, merged=True)
        self.explain(printed, cwd, terminal.confinement, failed=failed, tried_network=reading.tried_network)
        room = self._session.services.powers.answer_bytes
        if room is not None:
            reading = reading._replace(shown=reading.shown.shortened(room, self._session.processes.new_spool))
        if reading.ended_processes:
            self._call.warnings.append(ProcessesEnded(reading.ended_processes))
        return reading

    def note_cut(self, output: "Output", shown: int) -> None:
        """Warn that an answer shows only this many bytes of an output; keep all of it in a file."""
        spool = output.shortened(0, self._session.processes.new_spool).spool
        self._call.warnings.append(OutputCut(output.total_bytes - shown, spool))

    def _within_budget(self, outcome: "CommandOutcome", parts: int) -> "CommandOutcome":
        """Shorten what an answer shows of both streams together; files keep the whole."""
        streams, room = (outcome.stdout, outcome.stderr), self._session.services.powers.answer_bytes
        limit = None if room is None else room // parts
        kept = [len(each.head) + len(each.tail) for each in streams]
        if limit is None or sum(kept) <= limit:
            return outcome
        rooms = shares((kept[0], kept[1]), limit)
        new_spool = self._session.processes.new_spool
        stdout, stderr = (each.shortened(most, new_spool) for each, most in zip(streams, rooms, strict=True))
        return outcome._replace(stdout=stdout, stderr=stderr)

    def place(self, directory: str) -> str:
        """Return a directory relative to the root. Raises a PathFault if it is not there."""
        boundary = self._session.services.boundary
        with boundary.directory(directory):  # raises a PathFault if directory not found
            pass
        return self._call.files.stem(directory).rstrip("/")

    def ask(self, text: str, cwd: str, *, level: str = "", **shown: Any) -> Verdict:
        """Ask whether a command may run; `shown` are further fields of the question. Raises Denied."""
        self._call.end_trial()
        level = level or self._session.next_level()
        return self._call.ask(Effect.RUN, command=text, directory=cwd, sandbox=level, **shown)

    def warn(self, text: str, outcome: "CommandOutcome", cwd: str, *, merged: bool = False) -> None:
        """Add the warnings that an outcome calls for: the sandbox refused something, is reduced, or died."""
        self.note_sandbox(outcome.confinement, restarted=outcome.restarted)
        stdout, stderr = (each.head + each.tail for each in (outcome.stdout, outcome.stderr))
        printed = Printed(stdout, command=text, merged=True) if merged else Printed(stderr, stdout, text)
        self.explain(
            printed,
            cwd,
            outcome.confinement,
            failed=outcome.exit_code != 0,
            limit=outcome.limit,
            tried_network=outcome.tried_network,
        )
        if outcome.background:
            self._call.warnings.append(ProcessesLeft(sorted(outcome.background)))
        if outcome.sandbox_died:
            self._call.warnings.append(SandboxDied())

    def explain(
        self,
        printed: Printed,
        cwd: str,
        confinement: "Confinement",
        *,
        failed: bool | None,
        limit: str | None = None,
        tried_network: bool | None,
    ) -> None:
        """Warn of what the sandbox refused to a command in a directory; `failed` is None while the command runs."""
        denials = explain(
            printed,
            failed=failed,
            limit=limit,
            tried_network=tried_network,
            root=self._session.services.boundary.root,
            confinement=confinement,
            refuses=lambda path: self._session.sandbox.refuses(path, cwd),
        )
        self._call.warnings += [SandboxRefused(denial.kind, denial.path) for denial in denials]
        if lacks_git_identity(printed):
            self._call.warnings.append(GitIdentityMissing())

    def note_sandbox(self, confinement: "Confinement", *, restarted: bool) -> None:
        """Add the level of the sandbox to the metadata, and warn about what it does not confine."""
        self._call.metadata["sandbox"] = confinement.level
        if confinement.level == "reduced":
            wanted = self._session.services.powers.level
            self._call.warnings.append(SandboxReduced(wanted, "; ".join(confinement.why)))
        covered = confinement.by_bubblewrap and self._session.services.image is None
        if self._session.services.boundary.protected is not None and not covered:
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
