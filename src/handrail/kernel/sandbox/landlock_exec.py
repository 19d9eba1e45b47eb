"""Running a program inside an open directory, able to read nothing but that directory (Landlock, where Linux has it).
And what a process does to itself before it meets something hostile: `give_up_files`, `filter_calls`.

Where Landlock can, it reaches no TCP port either, no abstract socket, and no process but its own.

The domain is put on a thread that starts the program and then ends, so that the caller itself stays free.

The program holds the reading end of a pipe whose other end is ours. When we end, however that happens, the system
closes ours, and signals the program for it (`F_SETSIG`): nothing has to run in between, and no launcher is needed.
"""

import ctypes
import fcntl
import os
import resource
import signal
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES, _GET_SECCOMP = 38, 21
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _EVERY_THREAD = 1, 1
_EXECUTE, _READ_FILE, _READ_DIRECTORY = 1, 4, 8
# What each version of Landlock can forbid: rights to files, to TCP ports, and reach beyond the process itself.
_FORBIDDEN = {1: (13, 0, 0), 2: (14, 0, 0), 3: (15, 0, 0), 4: (15, 2, 0), 5: (16, 2, 0), 6: (16, 2, 2)}


class LimitsRefused(Exception):  # noqa: N818  another engine answers
    """Says that the system does not let us bound the program, which therefore was not left running."""


def abi() -> int:
    """The version of Landlock that the kernel speaks; 0 for none."""
    linux = sys.platform == "linux"
    return max(int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)), 0) if linux else 0


@cache
def available() -> bool:
    return abi() > 0


def start(argv: list[str], dir_fd: int, *, stdout: int, stderr: int, pass_fds: tuple[int, ...] = ()) -> "Popen[bytes]":
    """Start `argv` with the open directory as its own, no input and no environment."""
    from subprocess import Popen  # noqa: PLC0415  most calls start nothing

    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    program = os.open(argv[0], os.O_PATH | os.O_CLOEXEC)
    started: list[Popen[bytes]] = []
    failed: list[BaseException] = []

    def go() -> None:
        try:
            if available():
                _restrict([(_READ_FILE | _READ_DIRECTORY, dir_fd), (_EXECUTE | _READ_FILE, program)])
            here = f"/proc/self/fd/{dir_fd}"
            started.append(Popen(argv, cwd=here, env={}, stdin=null, stdout=stdout, stderr=stderr, pass_fds=pass_fds))
        except BaseException as error:  # noqa: BLE001  raised again where the caller can see it
            failed.append(error)

    thread = threading.Thread(target=go, name="handrail-confined-start")
    try:
        thread.start()
        thread.join()
    finally:
        os.close(null)
        os.close(program)
    if failed:
        raise failed[0]
    return started[0]


def can_filter() -> bool:
    """Say whether the kernel takes a filter of system calls, and we know how to hand it one."""
    return sys.platform == "linux" and os.uname().machine in _SECCOMP and _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def give_up_files() -> None:
    """Let this thread, and all that it starts, open no file and no TCP port any more (where there is Landlock)."""
    if available():
        _restrict([])


def filter_calls(code: bytes) -> None:
    """Refuse what the filter refuses, for good and in every thread (where there are filters, and one is given)."""
    if not code or not can_filter():
        return
    kept = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(kept)))
    _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc().syscall(_SECCOMP[os.uname().machine], _SET_FILTER, _EVERY_THREAD, program))


@contextmanager
def running(
    argv: list[str],
    dir_fd: int,
    stdout: int,
    *,
    stderr: int,
    pass_fds: tuple[int, ...] = (),
    limits: Mapping[int, int],
) -> "Iterator[Popen[bytes]]":
    """Run `argv` within resource limits; it ends with the block, or with this process if that is killed first.

    The handle `stdout` is handed over: what reads from its other end sees when the program ends.
    """
    try:
        theirs, ours = os.pipe2(os.O_CLOEXEC)
    except OSError:
        os.close(stdout)
        raise
    try:
        try:
            process = start(argv, dir_fd, stdout=stdout, stderr=stderr, pass_fds=(*pass_fds, theirs))
        finally:
            os.close(stdout)
        try:
            _signal_when_closed(theirs, process.pid)
            _bound(process.pid, limits)
            yield process
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(theirs)
        os.close(ours)


def _bound(pid: int, limits: Mapping[int, int]) -> None:
    """Lower the limits of a child. A process of two users (set-user-id) may not: it runs nothing unbounded."""
    try:
        for which, wanted in limits.items():
            _, hard = resource.prlimit(pid, which)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, which, (most, most))
    except PermissionError as error:
        raise LimitsRefused from error


def _signal_when_closed(reading: int, pid: int) -> None:
    """Have a process killed as soon as the other end of a pipe is closed."""
    fcntl.fcntl(reading, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reading, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _restrict(rules: list[tuple[int, int]]) -> None:
    libc = _libc()
    bits = _FORBIDDEN[min(abi(), max(_FORBIDDEN))]
    handled = b"".join(struct.pack("=Q", (1 << each) - 1) for each in bits if each)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0))
    try:
        for access, fd in rules:
            _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, fd), 0))
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
