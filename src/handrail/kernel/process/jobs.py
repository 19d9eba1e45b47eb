"""Runs commands as jobs: they go on after the call that started them, until they end, are stopped, or the session ends.

A job keeps its output within the limits of an answer. Each read returns the output since the read before.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.process.bounded_output import Output
from handrail.kernel.process.held_program import Keyboard, OutputProgram, request, wait_for_terminal
from handrail.kernel.process.runner import CANCEL_POLL_SECONDS, ending_of, returncode_of
from handrail.kernel.process.terminal_answers import TerminalAnswers
from handrail.kernel.sandbox.sandbox import StartedCommand
from handrail.model.faults import SandboxUnavailable
from handrail.model.job_faults import NoKeyboard, RightsNotGranted, TooManyJobs, UnknownJob
from handrail.model.rights import Rights

if TYPE_CHECKING:
    from handrail.kernel.process.runner import Processes

REMEMBERED = 64
"""The number of ended jobs whose output and exit status are kept."""


class JobStart(NamedTuple):
    """Holds what to start, and how."""

    text: str
    """The command as the caller wrote it."""
    argv: Sequence[str]
    cwd: str = ""
    """Relative to the root."""
    seconds: float | None = None
    """After how long the job is ended; None for never."""
    size: tuple[int, int] | None = None
    """The rows and columns of its terminal; None for a job without one, whose input is empty."""
    merged: bool = True
    """True if output and error are one stream; with a terminal they always are."""
    to_file: bool = False
    """True if the whole output goes into a file, too."""
    rights: Rights = Rights()
    """What the job may do beyond the sandbox: it then has a sandbox of its own, and leaves nothing behind."""

    @property
    def keeps_background(self) -> bool:
        """True if processes that the job leaves behind live until the session ends."""
        return self.size is None and not self.rights


class JobReading(NamedTuple):
    """Holds the output of a job since the last reading, and how the job is."""

    stdout: Output
    stderr: Output
    running: bool
    exit_code: int | None
    signal: str | None
    timed_out: bool
    """True if the job was ended because its time was up."""
    background: tuple[int, ...]
    """The processes that an ended job left behind."""
    ended_processes: int
    """The number of background processes that ended together with the job."""
    limit: str | None
    tried_network: bool | None
    """True if the job tried to reach a network that the sandbox does not have; None if that is not known."""
    sandbox_died: bool

    @property
    def returncode(self) -> int | None:
        """The exit code, or, as shells do, 128 plus the number of the signal; None while the job runs."""
        return returncode_of(self.exit_code, self.signal)


class JobFacts(NamedTuple):
    """Describes a job for a list."""

    number: int
    text: str
    directory: str
    started_at: float
    terminal: bool
    running: bool
    exit_code: int | None
    signal: str | None
    output_file: str


class Job(OutputProgram):
    """Holds one job. The background reader fills it; calls read it, type into it and stop it."""

    def __init__(
        self, processes: "Processes", started: StartedCommand, start: JobStart, number: int, streams: Sequence[int]
    ) -> None:
        super().__init__(processes, started, streams)
        self.number, self.start, self.started_at = number, start, time.time()
        self.timed_out = self.end_read = self._end_told = False
        self.output_file = ""
        self.ended: Callable[[], None] = lambda: None
        """Called in the thread of the background reader when the job has ended."""
        self.end_rights: Callable[[], None] = processes.close
        """Ends the sandbox of a job with more rights."""
        self._file, self._file_room = -1, processes.sandbox.settings.limits.spool_bytes
        self._keyboard: Keyboard | None = None
        self._answers: TerminalAnswers | None = None
        if start.size is not None:
            self.reads_to_end = True
            self._keyboard = Keyboard(streams[0])
            self._answers = TerminalAnswers(start.size, self._keyboard.answer)
        if start.to_file:
            self._file, self.output_file = processes.new_job_file()
        self._timer: threading.Timer | None = None

    def watch(self) -> None:
        super().watch()
        if self.start.seconds is not None:
            self._timer = threading.Timer(self.start.seconds, self._time_is_up)
            self._timer.daemon = True
            self._timer.start()

    def _time_is_up(self) -> None:
        if self.alive:
            self.timed_out = True
            self.end_surely(self._processes.sandbox)

    # called by the background reader

    def take_message(self, message: bytes) -> None:
        super().take_message(message)
        self._note_end()

    def _take(self, number: int, chunk: bytes) -> None:
        super()._take(number, chunk)
        self._note_end()

    def _note_end(self) -> None:
        """Tell that the job has ended, once."""
        if not self.alive and not self._end_told:
            self._end_told = True
            if self._timer is not None:
                self._timer.cancel()
            self.ended()
            if self.start.rights:  # from another thread: to close the sandbox waits for the thread that is here
                threading.Thread(target=self.end_rights, name="handrail-rights", daemon=True).start()

    def _keep(self, number: int, chunk: bytes) -> None:
        super()._keep(number, chunk)
        if self._answers is not None:
            self._answers.take(chunk)
        if self._file >= 0 and self._file_room > 0:
            try:
                self._file_room -= os.write(self._file, chunk[: self._file_room])
            except OSError:  # the disk is full: the file keeps what it has
                self._file_room = 0

    # called by tools

    @property
    def exit(self) -> tuple[int | None, str | None]:
        """The exit code and the signal; one of them is None."""
        return ending_of(self.status)

    @property
    def keyboard(self) -> Keyboard:
        """The keyboard of the job's terminal. Raises NoKeyboard."""
        if self._keyboard is None:
            raise NoKeyboard(str(self.number))
        return self._keyboard

    def read(self, seconds: float, cancel: threading.Event | None = None) -> JobReading:
        """Wait until the job has ended, at most `seconds`; return its output since the last reading."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while self.alive:
                left = deadline - time.monotonic()
                if left <= 0 or (cancel is not None and cancel.is_set()):
                    break
                self.changed.wait(left if cancel is None else min(left, CANCEL_POLL_SECONDS))
            running = self.alive
        self.check_started(self.start.argv[0], self.start.cwd)
        out, err = self.take_outputs()
        self.end_read = not running
        (code, signal), kept = self.exit, self.start.keeps_background
        return JobReading(
            stdout=out,
            stderr=err,
            running=running,
            exit_code=code,
            signal=signal,
            timed_out=self.timed_out,
            background=self.others if kept and not running else (),
            ended_processes=0 if kept or running else len(self.others),
            limit=self.limit,
            tried_network=self.tried_network(idle=not running and not self.others),
            sandbox_died=self.lost,
        )

    def type_unseen(self, data: bytes, seconds: float) -> bool:
        """Type for the user; return whether the terminal would have echoed it. Raises NoKeyboard."""
        return self.keyboard.write_unseen(data, seconds, self)

    def file_bytes(self, room: int) -> bytes:
        """Return the first bytes of the file with the whole output; the handle, not the name, says which file."""
        return os.pread(self._file, room, 0) if self._file >= 0 else b""

    def stop(self) -> None:
        """End the job and everything that it started."""
        if self.alive:
            self.end_surely(self._processes.sandbox)

    @property
    def facts(self) -> JobFacts:
        running, (code, signal) = self.alive, self.exit
        start, terminal = self.start, self._keyboard is not None
        return JobFacts(
            self.number, start.text, start.cwd, self.started_at, terminal, running, code, signal, self.output_file
        )

    def release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._keyboard is not None:
            self._keyboard.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            with contextlib.suppress(OSError):  # files that stay are removed after a day
                os.unlink(self.output_file)
        if self.others and self.start.keeps_background:
            self._processes.sandbox.background.append(self.channel)  # what the job left lives until the session ends
        else:
            super().release()


class Jobs:
    """Holds the jobs of one session by number: all that run, and the last ones that ended."""

    def __init__(
        self,
        processes: "Processes",
        changed: Callable[[list[JobFacts]], None] = lambda _: None,
        printed: Callable[[str, bytes], None] = lambda _number, _chunk: None,
    ) -> None:
        """Call `changed` with the list of jobs whenever one starts or ends, and with none at closing.

        `printed` is called with the number of a job and its output as it comes.
        """
        self._processes, self._changed, self._printed = processes, changed, printed
        self._lock = threading.RLock()
        self._all: dict[int, Job] = {}
        self._own: list[Processes] = []
        """The sandboxes of jobs with more rights; each ends with its job, at the latest with the session."""
        self._next = 1

    @property
    def any_busy(self) -> bool:
        """True if a job runs."""
        with self._lock:
            return any(job.alive for job in self._all.values())

    def start(self, start: JobStart) -> Job:
        """Start a job. Raises TooManyJobs and CommandNotStarted."""
        limits = self._processes.sandbox.settings.limits
        with self._lock:
            if sum(job.alive for job in self._all.values()) >= limits.jobs:
                raise TooManyJobs(limits.jobs)
            for old in [number for number, job in self._all.items() if not job.alive][:-REMEMBERED]:
                self._all.pop(old).release()
            job = self._all[self._next] = self._new_job(start, self._next)
            self._next += 1
        job.ended, job.tap = self._tell, partial(self._printed, str(job.number))
        job.watch()
        self._tell()
        return job

    def get(self, number: int) -> Job:
        """Return a job. Raises UnknownJob."""
        with self._lock:
            if number not in self._all:
                raise UnknownJob(str(number))
            return self._all[number]

    def forget(self, number: int) -> None:
        """Remove an ended job from the list, with its file."""
        with self._lock:
            if number in self._all and not self._all[number].alive:
                self._all.pop(number).release()
        self._tell()

    def printed(self, path: str, room: int) -> bytes | None:
        """Return the first bytes of a job's file, found by its path; None if no job has this file."""
        with self._lock:
            found = next((job for job in self._all.values() if job.output_file == path), None)
            return found.file_bytes(room) if found and path else None

    def list(self) -> list[JobFacts]:
        """Return what is known about every job, the oldest first."""
        with self._lock:
            return [job.facts for job in self._all.values()]

    def _tell(self) -> None:
        with self._lock:  # the newest list is reported last
            self._changed(self.list())

    def close(self) -> None:
        """Let running calls return, and release all jobs. The session closes the sandbox next: that ends them."""
        with self._lock:
            for job in self._all.values():
                job.ended = lambda: None
                job.abandon()
                job.release()
            self._all = {}
            self._tell()
        for own in self._own:  # without the lock, for which their readers may wait
            own.close()

    def _new_job(self, start: JobStart, number: int) -> Job:
        """Start a job in the sandbox of the session, or with more rights in one of its own."""
        begin = self._begin if start.size is None else self._begin_terminal
        if not start.rights:
            return begin(start, number, self._processes)
        sandbox = self._processes.sandbox
        self._refuse_moved(start.rights)
        sandbox.free(start.rights.guarded)
        own = self._processes.beside(sandbox.settings.with_rights(start.rights))
        self._own.append(own)
        try:
            job = begin(start, number, own)
        except BaseException:
            own.close()
            raise
        job.end_rights = lambda: self._end_rights(own, start.rights)
        return job

    def _refuse_moved(self, rights: Rights) -> None:
        """Raise RightsNotGranted for a place that leads elsewhere than the question showed, or that a job may move."""
        written = tuple(place for own in self._own for place in own.sandbox.written)
        places, sandbox = (*rights.read, *rights.write), self._processes.sandbox
        if moved := [path for path in places if sandbox.place_to_grant(path, written) != path]:
            raise RightsNotGranted([each for each in rights.words if each.partition(" ")[2] in moved])

    def _end_rights(self, own: "Processes", rights: Rights) -> None:
        """End the sandbox of a job, and every other one in which a guarded name that the job replaced lies open now."""
        own.close()
        for each in (self._processes, *self._own) if rights.guarded else ():
            with contextlib.suppress(SandboxUnavailable):  # it has ended, and the next command reads why
                each.sandbox.cover()

    @staticmethod
    def _begin(start: JobStart, number: int, processes: "Processes") -> Job:
        sandbox = processes.sandbox
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(1 if start.merged else 2)]
        empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        theirs = [empty, *(each[1] for each in (pipes * 2)[:2])]
        ours = [each[0] for each in pipes]
        try:
            wanted = request(sandbox, start.argv, start.cwd, {}, keep_background=start.keeps_background)
            return Job(processes, sandbox.begin(wanted, *theirs), start, number, ours)
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in set(theirs):
                os.close(fd)

    @staticmethod
    def _begin_terminal(start: JobStart, number: int, processes: "Processes") -> Job:
        sandbox = processes.sandbox
        started = sandbox.begin(request(sandbox, start.argv, start.cwd, {}, terminal=start.size))
        master, _pid, ended = wait_for_terminal(sandbox, started, start.argv, start.cwd)
        os.set_blocking(master, False)
        job = Job(processes, started, start, number, [master])
        if ended:
            job.take_message(ended)
        return job


def number_of(job: str) -> int:
    """Return the number that an id names. Raises UnknownJob."""
    try:
        return int(job)
    except ValueError:
        raise UnknownJob(job) from None
