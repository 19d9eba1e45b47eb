"""Runs a confined helper program with resource limits, and ends it when this process ends.

The program inherits the reading end of a pipe; this process keeps the writing end. When this process ends in any way,
the system closes the writing end and kills the program with a signal (`F_SETSIG`). No launcher process is needed.
"""

import fcntl
import os
import resource
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from handrail.kernel.sandbox.helpers import landlock_exec, namespace_exec

if TYPE_CHECKING:
    from subprocess import Popen


class LimitsRefused(Exception):  # noqa: N818  not an error: the searcher asks the other engine
    """Says that the system does not let this process limit the program; the program was ended."""


class Running(Protocol):
    """Describes a program that runs."""

    @property
    def pid(self) -> int:
        """The process to wait for."""
        ...

    def wait(self) -> int:
        """Return the exit status of the program. Raises NoNamespace if it could not be started in a namespace."""
        ...


@contextmanager
def running(
    argv: list[str],
    dir_fd: int,
    stdout: int,
    *,
    stderr: int,
    pass_fds: tuple[int, ...] = (),
    limits: Mapping[int, int],
    bwrap: str | None = None,
) -> Iterator[Running]:
    """Run `argv` with resource limits; it ends with the block, or with this process if that is killed first.

    With `bwrap`, it runs in a mount namespace; otherwise Landlock confines it. This function closes the handle
    `stdout`, so that the reader of its other end sees the end of the program. Raises NoNamespace.
    """
    try:
        theirs, ours = os.pipe2(os.O_CLOEXEC)
    except OSError:
        os.close(stdout)
        raise
    try:
        handles = (*pass_fds, theirs)
        try:
            process: Popen[bytes] | namespace_exec.InNamespace
            if bwrap is None:
                process = landlock_exec.start(argv, dir_fd, stdout=stdout, stderr=stderr, pass_fds=handles)
            else:
                process = namespace_exec.start(bwrap, argv, dir_fd, stdout=stdout, stderr=stderr, pass_fds=handles)
        finally:
            os.close(stdout)
        try:
            program = process.program if isinstance(process, namespace_exec.InNamespace) else process.pid
            with suppress(ProcessLookupError):  # a program in a namespace may have ended already
                _signal_when_closed(theirs, program)
                _limit(program, limits)
            yield process
        finally:
            process.kill()
            _close(process)
    finally:
        os.close(theirs)
        os.close(ours)


def _close(process: "Popen[bytes] | namespace_exec.InNamespace") -> None:
    if isinstance(process, namespace_exec.InNamespace):
        process.close()
    else:
        process.wait()


def _limit(pid: int, limits: Mapping[int, int]) -> None:
    """Lower the limits of a child. Raises LimitsRefused in a set-user-id process, which may not do that."""
    try:
        for which, wanted in limits.items():
            _, hard = resource.prlimit(pid, which)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, which, (most, most))
    except PermissionError as error:
        raise LimitsRefused from error


def _signal_when_closed(reading: int, pid: int) -> None:
    """Make the system kill a process as soon as the other end of a pipe is closed."""
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
