"""Runs one command inside the sandbox and reads its output until it ends.

This module enforces the command's deadline and cancellation. The supervisor inside ends all processes of the command.
If the supervisor does not do that in time, the whole sandbox is killed, which no process survives.
"""

import errno
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.kernel.process.background_reader import BackgroundReader
from handrail.kernel.process.bounded_output import BoundedOutput, Output, OutputFiles
from handrail.kernel.sandbox.first_command import FirstProcess
from handrail.kernel.sandbox.sandbox import Confinement, Sandbox, SandboxSettings, StartedCommand
from handrail.kernel.sandbox.supervisor_link import memory_file
from handrail.model.faults import CommandNotStarted
from handrail.model.limits import DAY

CANCEL_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Command:
    """Holds what to run, where, and within which bounds."""

    argv: Sequence[str]
    cwd: str = ""
    """Relative to the root."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables in addition to those of the sandbox."""
    only_environment: bool = False
    """True if the command sees only the variables in `environment`."""
    stdin: bytes | None = None
    """What the command reads; None for nothing."""
    timeout_seconds: float | None = None
    output_bytes: int | None = None
    merged: bool = False
    """True if output and error are one stream, `stdout`."""
    keep_background: bool = False
    """True if children that outlive the command run until the workspace closes; otherwise they end with the command."""
    cancel: threading.Event | None = None
    tap: Callable[[bytes], None] | None = None
    """Called with the output of both streams as it comes."""


class CommandOutcome(NamedTuple):
    """Holds how a command ended and what it printed."""

    stdout: Output
    stderr: Output
    exit_code: int | None
    signal: str | None
    """The name of the signal that ended it, such as SIGKILL."""
    timed_out: bool
    cancelled: bool
    background: tuple[int, ...]
    """Children that still run, by the process numbers that the next command sees."""
    pgid: int | None
    limit: str | None
    """The limit that ended it: processes, memory or disk."""
    tried_network: bool | None
    """True if it tried to reach a network that the sandbox does not have; None if that is not known."""
    sandbox_died: bool
    restarted: bool
    """True if the session's earlier sandbox had died, so that this command started a new one."""
    confinement: Confinement
    seconds: float

    @property
    def returncode(self) -> int | None:
        """The exit code, or, as shells do, 128 plus the number of the signal; None if neither is known."""
        return returncode_of(self.exit_code, self.signal)


class Processes:
    """Runs commands in one sandbox. `spool_directory` keeps the output that is too long for a result."""

    def __init__(self, sandbox: Sandbox, spool_directory: str) -> None:
        self.sandbox, self._spool_directory = sandbox, spool_directory
        self._spools = OutputFiles(spool_directory, sandbox.settings.limits, sandbox.owner)
        self.reader = BackgroundReader()

    def run(self, command: Command) -> CommandOutcome:
        """Run a command to its end. Raises CommandNotStarted and SandboxUnavailable."""
        while (outcome := _Run(self, command).follow()) is None:
            pass
        return outcome

    def beside(self, settings: SandboxSettings) -> "Processes":
        """Return a runner in a second sandbox of the same workspace, with other settings; the caller closes it."""
        return Processes(self.sandbox.beside(settings), self._spool_directory)

    def new_spool(self) -> tuple[int, str]:
        """Make a new file for a long output; return its handle and its path."""
        return self._spools.new()

    def new_job_file(self) -> tuple[int, str]:
        """Make a file for the whole output of a job; return its handle and its path."""
        return self._spools.new_for_job()

    def drain(self, fd: int) -> None:
        """Read and discard the output of background children: a full pipe would stop them, a closed one end them."""
        self.reader.add(fd, lambda _: None)

    def close(self) -> None:
        """End the sandbox with everything that runs in it, and remove old output files."""
        self.sandbox.close()
        self.reader.close()
        self._spools.prune()


class _Run:
    """Follows one command from its start to its end."""

    def __init__(self, processes: Processes, command: Command) -> None:
        self.processes, self.command, self.sandbox = processes, command, processes.sandbox
        limits = self.sandbox.settings.limits
        self.began = time.monotonic()
        seconds = limits.command_seconds if command.timeout_seconds is None else command.timeout_seconds
        self.deadline = self.began + seconds
        self.ending_deadline: float | None = None
        self.patience = limits.end_patience_seconds
        limit = limits.output_bytes if command.output_bytes is None else command.output_bytes
        self.outputs = [
            BoundedOutput(limit, limits.spool_bytes, processes.new_spool, command.tap)
            for _ in range(1 if command.merged else 2)
        ]
        self.pipes: dict[int, BoundedOutput] = {}
        self.poller = select.poll()
        self.first: FirstProcess | None = None
        self.pid: int | None = None
        self.status: int | None = None
        self.background: tuple[int, ...] = ()
        self.limit: str | None = None
        self.timed_out = self.cancelled = self.over = self.sandbox_died = False

    def follow(self) -> CommandOutcome | None:
        """Return the outcome; None if the sandbox could not be started this way, and the next way should be tried."""
        started = self._start()
        self.poller.register(started.channel, select.POLLIN)
        retry = False
        try:
            while not self.over and not retry:
                retry = self._step(started)
            if not retry:
                self._drain()
        finally:
            self._release(started)
        return None if retry else self._outcome(started)

    def _start(self) -> StartedCommand:
        """Start the command with pipes for its output."""
        writers = []
        try:
            for output in self.outputs:
                reader, writer = os.pipe2(os.O_CLOEXEC)
                writers.append(writer)
                self.pipes[reader] = output
                os.set_blocking(reader, False)
                self.poller.register(reader, select.POLLIN)
            given, ends = self._given(), (writers * 2)[:2]
            writers += given
            started = self.sandbox.begin(self._request(), *given, *ends)
        except BaseException:
            for reader in self.pipes:
                os.close(reader)
            raise
        finally:
            for writer in writers:
                os.close(writer)
        if started.info is not None:
            self.first = FirstProcess(started.info, started.channel.link)
            self.poller.register(self.first, select.POLLIN)
        return started

    def _given(self) -> list[int]:
        """Open what the command reads, if it reads something."""
        return [] if self.command.stdin is None else [memory_file(self.command.stdin)]

    def _request(self) -> dict[str, object]:
        limits, command = self.sandbox.settings.limits, self.command
        cwd = os.path.join(self.sandbox.root, "" if command.cwd == "." else command.cwd).rstrip("/") or "/"
        additions = {os.fsencode(k): os.fsencode(v) for k, v in command.environment.items()}
        return {
            "argv": [os.fsencode(word) for word in command.argv],
            "cwd": os.fsencode(cwd),
            "additions": additions,
            "only_additions": command.only_environment,
            "keep_background": command.keep_background,
            "grace": limits.end_grace_seconds,
            "terminal": None,
        }

    def _step(self, started: StartedCommand) -> bool:
        """Wait for the next event and handle it. Return True if the sandbox did not start and nothing ran."""
        for fd, _ in self.poller.poll(self._pause()):
            if fd in self.pipes:
                self._read(fd)
            elif fd == started.channel.fileno():
                message, _handles = started.channel.receive()
                if message:
                    self._take_message(message)
                elif self.sandbox.start_failed(started.channel):
                    return True
                else:
                    self.sandbox_died = self.over = True
                    started.channel.link.mark_lost()
            elif self.first is not None:
                self._check_first(self.first, fd)
        self._check_deadlines(started)
        return False

    def _pause(self) -> int:
        until = self.deadline if self.ending_deadline is None else self.ending_deadline
        seconds = min(max(0.0, until - time.monotonic()), DAY)  # poll() accepts at most about a month
        if self.command.cancel is not None and self.ending_deadline is None:
            seconds = min(seconds, CANCEL_POLL_SECONDS)
        return int(seconds * 1000) + 1

    def _read(self, fd: int) -> None:
        """Read what is in a pipe; close the pipe at its end."""
        output = self.pipes[fd]
        try:
            while (count := output.pull(fd)) and output.wants_more:
                pass
        except BlockingIOError:
            return
        if count:
            return
        self.poller.unregister(fd)
        os.close(fd)
        del self.pipes[fd]

    def _check_first(self, first: FirstProcess, fd: int) -> None:
        """See whether a first command has ended before the supervisor runs."""
        if fd == first.fileno():
            handle = first.watch()
            if handle is not None:
                self.poller.register(handle, select.POLLIN)
                self.poller.unregister(fd)
            return
        self.poller.unregister(fd)
        if not self.over and (status := first.status()) is not None:
            self.pid, self.status, self.over = first.inner_pid, status, True

    def _take_message(self, message: bytes) -> None:
        """Note what the supervisor reports about the command."""
        word, *facts = message.split(b" ")
        if word == b"failed":
            name = errno.errorcode.get(int(facts[0]), "EIO")
            raise CommandNotStarted(self.command.argv[0], self.command.cwd, name)
        if word == b"exit":
            self.pid, self.status, self.over = int(facts[0]), int(facts[1]), True
            if facts[2] != b"-" and self.command.keep_background:
                self.background = tuple(int(pid) for pid in facts[2].split(b","))
            self.limit = None if facts[3] == b"-" else facts[3].decode()

    def _check_deadlines(self, started: StartedCommand) -> None:
        """Ask the supervisor to end a cancelled or late command; kill the sandbox if it does not obey in time."""
        now = time.monotonic()
        if self.over:
            return
        if self.ending_deadline is not None:
            if now >= self.ending_deadline:
                self.sandbox.kill(started.channel.link)
                self.ending_deadline = now + self.patience
            return
        self.cancelled = self.command.cancel is not None and self.command.cancel.is_set()
        self.timed_out = not self.cancelled and now >= self.deadline
        if self.cancelled or self.timed_out:
            started.channel.end()
            self.ending_deadline = now + self.patience

    def _drain(self) -> None:
        """Read what the command printed before its end; later output of its children is not part of the result."""
        for fd in list(self.pipes):
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            for _ in range(64):
                if fd not in self.pipes or not poller.poll(0):
                    break
                self._read(fd)

    def _release(self, started: StartedCommand) -> None:
        """Close pipes and channel, or keep them open for background children."""
        for fd in self.pipes:
            if self.background:
                self.processes.drain(fd)
            else:
                os.close(fd)
        if self.background:
            self.sandbox.background.append(started.channel)
        else:
            started.channel.close()
        if self.first is not None:
            self.first.close()

    def _outcome(self, started: StartedCommand) -> CommandOutcome:
        code, name = ending_of(self.status)
        out, *err = (output.finish() for output in self.outputs)
        return CommandOutcome(
            stdout=out,
            stderr=err[0] if err else Output(b""),
            exit_code=code,
            signal=name,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
            background=self.background,
            pgid=self.pid,
            limit=self.limit,
            tried_network=None if started.network is None else started.network.take(),
            sandbox_died=self.sandbox_died,
            restarted=started.restarted,
            confinement=started.confinement,
            seconds=time.monotonic() - self.began,
        )


def ending_of(status: int | None) -> tuple[int | None, str | None]:
    """Split a wait status into (exit code, name of the signal); one of them is None."""
    if status is None:
        return None, None
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code, None
    try:
        return None, signal.Signals(-code).name
    except ValueError:  # a real-time signal has no name
        return None, f"SIG{-code}"


def returncode_of(exit_code: int | None, signal_name: str | None) -> int | None:
    """Return the exit code, or, as shells do, 128 plus the number of the signal that ended a process."""
    if signal_name is None:
        return exit_code
    return 128 + signal_number(signal_name)


def signal_number(name: str) -> int:
    """Return the number of a signal; `SIG34` stands for a signal without a name of its own."""
    number = name.removeprefix("SIG")
    return int(number) if number.isdigit() else signal.Signals[name].value
