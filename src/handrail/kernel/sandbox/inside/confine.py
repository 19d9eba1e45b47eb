"""Confines the supervisor's own process if there is no bubblewrap; runs before the supervisor.

It makes the supervisor the parent of orphans. At level `reduced` it also gives up every right that commands must not
have; the restrictions apply to every process that is started later.

Like the supervisor, this module is sent as code and cannot import other modules of Handrail.
"""

import ctypes
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS, SET_SECCOMP, DROP_BOUNDING = 36, 38, 22, 24
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
BENEATH_A_PATH, FILTER = 1, 2
FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15
CAPABILITIES_V3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


class RulesetAttr(ctypes.Structure):
    """Mirrors `struct landlock_ruleset_attr`."""

    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class PathAttr(ctypes.Structure):
    """Mirrors `struct landlock_path_beneath_attr`."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class FilterProgram(ctypes.Structure):
    """Mirrors `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def checked(result: int) -> int:
    """Return the result of a C function; raise OSError for a negative one."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def give_up_capabilities() -> None:
    """Drop every capability of this process and of all that it starts."""
    for capability in range(64):
        libc.prctl(DROP_BOUNDING, capability, 0, 0, 0)  # fails for an unknown capability, or without any
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_V3, 0)
    checked(libc.capset(header, (ctypes.c_uint32 * 6)()))


def restrict_files(rules: "list[tuple[int | str, int]]", rights: int, scopes: int) -> None:
    """Forbid `rights` everywhere but where a rule (path or handle, rights) allows them."""
    attributes = RulesetAttr(rights, 0, scopes)
    size = ctypes.sizeof(attributes) if scopes else 8
    ruleset = checked(libc.syscall(CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0))
    for place, allowed in rules:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC) if isinstance(place, str) else place
        fitting = allowed if stat.S_ISDIR(os.fstat(fd).st_mode) else allowed & FILE_RIGHTS
        rule = PathAttr(fitting, fd)
        checked(libc.syscall(ADD_RULE, ruleset, BENEATH_A_PATH, ctypes.byref(rule), 0))
        os.close(fd)
    checked(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def filter_calls(code: bytes) -> None:
    """Install a system call filter."""
    kept = ctypes.create_string_buffer(code, len(code))
    program = FilterProgram(len(code) // 8, ctypes.cast(kept, ctypes.c_void_p))
    checked(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))


def main(confine: "dict[str, Any] | None") -> None:
    """Become the parent of orphans, and apply the restrictions of `landlock_rules.options` if there are any."""
    checked(libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    if confine is not None:
        give_up_capabilities()
        checked(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        restrict_files(confine["rules"], confine["rights"], confine["scopes"])
        filter_calls(confine["filter"])
