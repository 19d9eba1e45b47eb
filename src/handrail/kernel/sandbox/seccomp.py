"""Assembles BPF programs that refuse system calls: those that no command needs and that an escape begins with.

The filter for commands lists what it refuses, not what it allows: the namespaces are the boundary, and the filter
closes what they leave open. The functions are pure; bubblewrap, or `inside/confine.py`, installs the result.
"""

import errno
import functools
import struct
from dataclasses import field

from handrail.model.record import record

LOAD, JUMP_EQ, JUMP_GE, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
NEW_NAMESPACES = 0x7E020000
SET_ID_BITS = 0o6000
CREATING = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE
TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

Numbers = tuple[int | None, int | None]

# name: (x86_64, aarch64); None if the architecture does not have the call
REFUSED: dict[str, Numbers] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
# A filter cannot follow the pointer to the flags of these calls. It reports them as missing (ENOSYS), so that programs
# use the older calls.
MISSING: dict[str, Numbers] = {"clone3": (435, 435), "openat2": (437, 437)}
CLONE: Numbers = (56, 220)
IOCTL: Numbers = (16, 29)
SOCKET: Numbers = (41, 198)

# Calls that could make a set-user-id file, which would outlive the sandbox: (numbers, index of the mode).
MODE_CALLS: tuple[tuple[Numbers, int], ...] = (
    ((90, None), 1),  # chmod
    ((91, 52), 1),  # fchmod
    ((268, 53), 2),  # fchmodat
    ((452, 452), 2),  # fchmodat2
    ((85, None), 1),  # creat
    ((133, None), 1),  # mknod
    ((259, 33), 2),  # mknodat
)
# (numbers, index of the flags, index of the mode): the mode counts only if the flags let the call create a file.
OPEN_CALLS: tuple[tuple[Numbers, int, int], ...] = (((2, None), 1, 2), ((257, 56), 2, 3))

# The calls of a process that only computes: memory, its open streams, its end. It can open and start nothing.
COMPUTING: dict[str, Numbers] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "exit": (60, 93),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "exit_group": (231, 94),
    "set_robust_list": (273, 99),
    "getrandom": (318, 278),
    "rseq": (334, 293),
}
NEW_THREAD = 0x10000


@record
class _Program:
    """Collects the instructions of a BPF program for one architecture."""

    machine: str
    code: list[tuple[int, int, int, int]] = field(default_factory=list)

    def number(self, numbers: Numbers) -> int | None:
        return numbers[0 if self.machine == "x86_64" else 1]

    def refuse(self, error: int) -> tuple[int, int, int, int]:
        return (RETURN, 0, 0, REFUSE | error)

    def rule(self, numbers: Numbers, *body: tuple[int, int, int, int]) -> None:
        """Add a rule: run `body` for this system call, and continue with the next rule for every other one."""
        number = self.number(numbers)
        if number is not None:
            self.code += [(LOAD, 0, 0, NUMBER), (JUMP_EQ, 0, len(body), number), *body]

    def argument(self, index: int) -> tuple[int, int, int, int]:
        return (LOAD, 0, 0, ARGUMENTS + 8 * index)

    def check_machine(self) -> None:
        """Add a rule: kill a process that uses the call numbers of another architecture."""
        self.code += [(LOAD, 0, 0, ARCH), (JUMP_EQ, 1, 0, ARCHES[self.machine]), (RETURN, 0, 0, KILL)]
        if self.machine == "x86_64":
            self.code += [(LOAD, 0, 0, NUMBER), (JUMP_GE, 0, 1, X32_BIT), (RETURN, 0, 0, KILL)]

    def assembled(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *step) for step in self.code)


ALLOWED = (RETURN, 0, 0, ALLOW)


@functools.cache
def assemble(machine: str, families: tuple[int, ...] = (UNIX, INET, INET6, NETLINK)) -> bytes:
    """Return the filter for commands on one architecture; it allows sockets only of these `families`."""
    program = _Program(machine)
    no, missing = program.refuse(errno.EPERM), program.refuse(errno.ENOSYS)
    program.check_machine()
    for numbers in MISSING.values():
        program.rule(numbers, missing)
    for numbers in REFUSED.values():
        program.rule(numbers, no)
    program.rule(CLONE, program.argument(0), (JUMP_SET, 0, 1, NEW_NAMESPACES), no, ALLOWED)
    for request in TERMINAL_INJECTION:
        program.rule(IOCTL, program.argument(1), (JUMP_EQ, 0, 1, request), no)
    known = [(JUMP_EQ, len(families) - at, 0, family) for at, family in enumerate(families)]
    program.rule(SOCKET, program.argument(0), *known, program.refuse(errno.EAFNOSUPPORT), ALLOWED)
    for numbers, mode in MODE_CALLS:
        program.rule(numbers, program.argument(mode), (JUMP_SET, 0, 1, SET_ID_BITS), no, ALLOWED)
    for numbers, flags, mode in OPEN_CALLS:
        program.rule(
            numbers,
            program.argument(flags),
            (JUMP_SET, 0, 3, CREATING),
            program.argument(mode),
            (JUMP_SET, 0, 1, SET_ID_BITS),
            no,
            ALLOWED,
        )
    program.code.append(ALLOWED)
    return program.assembled()


def assemble_for_computing(machine: str) -> bytes:
    """Return the filter for a process that only computes; empty for an unknown architecture."""
    if machine not in ARCHES:
        return b""
    program = _Program(machine)
    no, missing = program.refuse(errno.EPERM), program.refuse(errno.ENOSYS)
    program.check_machine()
    for numbers in COMPUTING.values():
        program.rule(numbers, ALLOWED)
    program.rule(MISSING["clone3"], missing)
    program.rule(CLONE, program.argument(0), (JUMP_SET, 0, 1, NEW_THREAD), ALLOWED, no)
    program.code.append(no)
    return program.assembled()
