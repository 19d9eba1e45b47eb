"""Runs jobs for one call: starts them after approval, reads them, types into them and stops them."""

from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.process.jobs import Job, JobFacts, JobReading, JobStart, number_of
from handrail.kernel.sandbox.denials import Printed
from handrail.model.job_faults import JobEnded
from handrail.model.rights import Rights
from handrail.model.warnings import NotAllTyped, ProcessesEnded, ProcessesLeft, RightsEnded, SandboxDied
from handrail.runtime.command_checks import check_command
from handrail.runtime.commands import UNASKED, Commands

if TYPE_CHECKING:
    from handrail.runtime.call import Call

TERMINAL_SIZE = (24, 80)


class JobOptions(NamedTuple):
    """Says how a job runs."""

    seconds: float | None = None
    """After how long the job is ended; None for never."""
    program: tuple[str, ...] = ()
    """The program and options in front of the text; the shell of the session if there are none."""
    terminal: bool = False
    """True if the job has a terminal, so that a call can type; otherwise its input is empty."""
    merged: bool = True
    """True if output and error are one stream, `stdout`."""
    to_file: bool = False
    """True if the whole output goes into a file, too."""
    brief: bool = False
    """True if a job that ends while the call waits is forgotten: nothing is left to be read of it."""
    bounded: bool = False
    """True if an answer shows its output within `answer_tokens`; otherwise the dialect has a limit of its own."""


_PLAIN = JobOptions()
_NO_RIGHTS = Rights()


class JobRead(NamedTuple):
    """Holds what a job printed since the last read, and how it is."""

    job: str
    """The id of the job."""
    reading: JobReading
    output_file: str = ""

    @property
    def running(self) -> bool:
        return self.reading.running


class JobCommands:
    """Runs jobs for one call. A job continues after the call; it ends by itself, by `stop`, or with the session."""

    def __init__(self, call: "Call") -> None:
        self._call, self._session, self._commands = call, call.session, Commands(call)

    def start(
        self,
        text: str,
        *,
        wait_seconds: float,
        directory: str = ".",
        options: JobOptions = _PLAIN,
        justification: str = "",
        rights: Rights = _NO_RIGHTS,
    ) -> JobRead:
        """Start a command as a job after approval; wait at most `wait_seconds` for its end.

        A call that is cancelled while it waits stops the job. `justification` is shown in the question. With `rights`,
        which the question shows, the job has a sandbox of its own, and leaves no process behind. Raises EmptyCommand,
        PatchTyped, TooManyJobs, and a PathFault for the directory.
        """
        check_command(self._call, text)
        cwd = self._commands.place(directory)
        verdict = self._commands.ask(text, cwd, justification=justification, rights=rights, targets=rights.guarded)
        granted = rights if verdict.rights is None else verdict.rights
        size = TERMINAL_SIZE if options.terminal else None
        argv = [*(options.program or (self._session.shell, "-c")), text]
        start = JobStart(text, argv, cwd, options.seconds, size, options.merged, options.to_file, granted)
        with self._commands.recorded(text, verdict, rights=granted):
            job = self._session.jobs.start(start)
            self._commands.note_sandbox(job.confinement, restarted=job.restarted)
            made = self._read(job, wait_seconds, text, bounded=options.bounded)
        if options.brief and not made.running:
            self._session.jobs.forget(job.number)
        return made

    def printed(self, path: str) -> bytes | None:
        """Return the start of the file with the output of a job, found by its path; None if no job has this file."""
        jobs = self._session.known_jobs
        return jobs.printed(path, self._call.limits.page_bytes) if jobs is not None else None

    def read(self, job: str, wait_seconds: float = 0) -> JobRead:
        """Return what a job printed since the last read; wait at most `wait_seconds` for its end.

        Raises UnknownJob, and JobEnded if a call has reported the end of the job.
        """
        found = self._find(job)
        if found.end_read:
            raise self._ended(found)
        with self._commands.recorded(found.start.text, UNASKED, goes_on=True):
            return self._read(found, wait_seconds)

    def type(self, job: str, chars: str, wait_seconds: float) -> JobRead:
        """Type into a job after approval; return what it prints until its end, at most for `wait_seconds`.

        If the job has ended meanwhile, nothing is typed. Raises UnknownJob, NoKeyboard for a job without a terminal,
        and JobEnded if a call has reported the end of the job.
        """
        found = self._find(job)
        if not found.alive:
            self._call.warnings.append(NotAllTyped(0, len(chars.encode())))
            return self.read(job)
        level, keyboard = self._session.named_level(found.confinement.level), found.keyboard
        rights = found.start.rights
        verdict = self._commands.ask(chars, "", terminal=job, level=level, rights=rights, targets=rights.guarded)
        data = chars.encode()
        with self._commands.recorded(chars, verdict, goes_on=True):
            written = keyboard.write(data, self._call.limits.terminal_write_seconds, found)
            if found.alive and written < len(data):
                self._call.warnings.append(NotAllTyped(written, len(data)))
            return self._read(found, wait_seconds, chars)

    def stop(self, job: str) -> JobRead:
        """End a job and everything that it started; return its last output. Raises UnknownJob and JobEnded."""
        found = self._find(job)
        if found.end_read:
            raise self._ended(found)
        with self._commands.recorded(found.start.text, UNASKED, goes_on=True):
            found.stop()
            return self._read(found, 0)

    def has_terminal(self, job: str) -> bool:
        """Return whether a job has a terminal. Raises UnknownJob."""
        return self._find(job).facts.terminal

    def list(self) -> list[JobFacts]:
        """Return the jobs of the session, the oldest first."""
        return self._session.jobs.list()

    def _find(self, job: str) -> Job:
        found = self._session.jobs.get(number_of(job))
        self._call.end_trial()
        return found

    @staticmethod
    def _ended(job: Job) -> JobEnded:
        code, signal = job.exit
        return JobEnded(str(job.number), code, signal or "")

    def _read(self, job: Job, wait_seconds: float, text: str = "", *, bounded: bool = False) -> JobRead:
        """Read a job. `text` is what this call runs or types; if it only reads, the command counts at its end."""
        reading = job.read(min(wait_seconds, self._call.limits.job_wait_seconds), self._call.cancel)
        if reading.running and self._call.cancel is not None and self._call.cancel.is_set():
            job.stop()
            self._call.check_cancelled()
        self._warn(job, reading, text if text or reading.running else job.start.text)
        room = self._session.services.powers.answer_bytes
        if bounded and room is not None:  # such a job has one stream
            reading = reading._replace(stdout=reading.stdout.shortened(room, self._session.processes.new_spool))
        return JobRead(str(job.number), reading, job.output_file)

    def _warn(self, job: Job, reading: JobReading, text: str) -> None:
        """Add the warnings that a reading calls for."""
        warnings = self._call.warnings
        stdout, stderr = (each.head + each.tail for each in (reading.stdout, reading.stderr))
        merged = job.start.merged or job.facts.terminal
        printed = Printed(stdout, command=text, merged=True) if merged else Printed(stderr, stdout, text)
        self._commands.explain(
            printed,
            job.start.cwd,
            job.confinement,
            failed=None if reading.running else reading.exit_code != 0,
            limit=reading.limit,
            tried_network=reading.tried_network,
        )
        if reading.running:
            return
        if reading.background:
            warnings.append(ProcessesLeft(sorted(reading.background)))
        if reading.ended_processes:
            ended = RightsEnded if job.start.rights else ProcessesEnded
            warnings.append(ended(reading.ended_processes))
        if reading.sandbox_died:
            warnings.append(SandboxDied())
