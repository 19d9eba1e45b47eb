"""Runs a program in an open directory so that it can read only that directory (Landlock, if the kernel has it).

If the version of Landlock can, the program also reaches no TCP port, no abstract socket and no other process.
The restriction applies to a thread that starts the program and then ends, so that this process stays unrestricted.

`give_up_files` and `filter_calls` restrict this process itself, before it reads hostile input.
"""

import ctypes
import os
import struct
import sys
import threading
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
# By version of Landlock, the number of rights that it can forbid: to files, to TCP ports, and to other processes.
_FORBIDDEN = {1: (13, 0, 0), 2: (14, 0, 0), 3: (15, 0, 0), 4: (15, 2, 0), 5: (16, 2, 0), 6: (16, 2, 2)}
_FIRST_WITHOUT_FILES = 4
"""The first version that can forbid something without any rule about files."""


def abi() -> int:
    """Return the version of Landlock that the kernel supports; 0 if it has no Landlock."""
    linux = sys.platform == "linux"
    return max(int(_libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)), 0) if linux else 0


@cache
def available() -> bool:
    """Return True if the kernel has Landlock."""
    return abi() > 0


def start(
    argv: list[str],
    dir_fd: int,
    *,
    stdout: int,
    stderr: int,
    pass_fds: tuple[int, ...] = (),
    files: bool = True,
) -> "Popen[bytes]":
    """Start `argv` in the open directory, with no input and no variable but PWD. `files` forbids it all other files.

    The system cannot name the directory of a layer for a program outside its mount namespace; PWD does.
    """
    from subprocess import Popen  # noqa: PLC0415  saves start-up time: most calls start nothing

    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    program = os.open(argv[0], os.O_PATH | os.O_CLOEXEC)
    started: list[Popen[bytes]] = []
    failed: list[BaseException] = []

    def restrict_and_start() -> None:
        try:
            if available() and files:
                _restrict([(_READ_FILE | _READ_DIRECTORY, dir_fd), (_EXECUTE | _READ_FILE, program)])
            elif abi() >= _FIRST_WITHOUT_FILES:
                _restrict(None)
            here = f"/proc/self/fd/{dir_fd}"
            own = {"PWD": os.readlink(here)}
            started.append(Popen(argv, cwd=here, env=own, stdin=null, stdout=stdout, stderr=stderr, pass_fds=pass_fds))
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=restrict_and_start, name="handrail-confined-start")
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
    """Return True if the kernel supports system call filters and we know its system call number."""
    return sys.platform == "linux" and os.uname().machine in _SECCOMP and _libc().prctl(_GET_SECCOMP, 0, 0, 0, 0) >= 0


def give_up_files() -> None:
    """Forbid this thread, and all that it starts, to open files and TCP ports (if the kernel has Landlock)."""
    if available():
        _restrict([])


def filter_calls(code: bytes) -> None:
    """Install a system call filter in every thread, for good. Do nothing for empty code or without kernel support."""
    if not code or not can_filter():
        return
    kept = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(kept)))
    _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc().syscall(_SECCOMP[os.uname().machine], _SET_FILTER, _EVERY_THREAD, program))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _restrict(rules: list[tuple[int, int]] | None) -> None:
    """Restrict this thread to these (rights, handle) pairs; None: restrict it in everything but files."""
    libc = _libc()
    bits = _FORBIDDEN[min(abi(), max(_FORBIDDEN))]
    handled = [struct.pack("=Q", (1 << each) - 1) for each in bits if each]
    if rules is None:
        handled[0] = bytes(8)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, b"".join(handled), ctypes.c_size_t(8 * len(handled)), 0))
    try:
        for access, fd in rules or ():
            _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, fd), 0))
        _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _checked(result: int) -> int:
    """Return the result of a C function; raise OSError for a negative one."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
