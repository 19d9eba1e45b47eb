"""Finds out whether the programs of a terminal wait for input: then they have printed all that they will print.

The system answers that. No program of the terminal's foreground may run: each waits for a key, for a child, or for
another thread, and one waits for a key. A program that waits in another way (`epoll`, a timer, a pipe) may print
without input, so the answer is no. A hostile program can let one process wait for a key while another one, which is not
in the foreground, prints later; a call then returns early, and the next one has the rest.
"""

import errno
import fcntl
import os
import select
from collections.abc import Iterator
from typing import NamedTuple

_OPEN_OTHER_END, _SESSION = 0x5441, 0x5429
_CONTROLLING_TERMINAL = os.makedev(5, 0)
_FOREVER = 0


class _Calls(NamedTuple):
    """Holds the numbers of system calls on one kind of processor."""

    read: int
    selects: tuple[int, ...]
    waits: tuple[int, ...]
    """Wait for a child or a signal."""
    futex: int


_BY_MACHINE = {
    "x86_64": _Calls(0, (23, 270), (61, 247, 130), 202),
    "aarch64": _Calls(63, (72,), (260, 95, 133), 98),
}


class _Terminal(NamedTuple):
    """Holds what identifies a terminal: its device file, as programs have it open."""

    device: int
    inode: int

    def is_open_as(self, pid: int, fd: int) -> bool:
        """Return whether a process has this terminal open with this number."""
        found = os.stat(f"/proc/{pid}/fd/{fd}")
        return found.st_rdev == _CONTROLLING_TERMINAL or (found.st_dev, found.st_ino) == self


def awaits_input(master: int) -> bool:
    """Return True if it is certain that the foreground of a terminal waits for a key; `master` is our end of it."""
    calls = _BY_MACHINE.get(os.uname().machine)
    if calls is None:
        return False
    try:
        leader = int.from_bytes(fcntl.ioctl(master, _SESSION, bytes(4)), "little")
        other_end = fcntl.ioctl(master, _OPEN_OTHER_END, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # the program has ended
        return False
    try:
        found = os.fstat(other_end)
        poll = select.poll()
        poll.register(other_end, select.POLLIN)
        if poll.poll(0):  # input that was not read yet
            return False
        return _all_wait(_Terminal(found.st_dev, found.st_ino), leader, os.tcgetpgrp(master), calls)
    except (OSError, ValueError, IndexError):  # a process ended meanwhile, or this user may not look at it
        return False
    finally:
        os.close(other_end)


def _all_wait(terminal: _Terminal, leader: int, group: int, calls: _Calls) -> bool:
    reads = found_leader = False
    for pid in _below(_Process.of(leader).parent):
        found_leader |= pid == leader
        process = _Process.of(pid)
        if process.group != group or process.state in "ZX":
            continue
        for thread in os.listdir(f"/proc/{pid}/task"):
            kind = _wait_of(terminal, pid, thread, calls)
            if kind == "":
                return False
            reads |= kind == "key"
    return reads and found_leader


def _wait_of(terminal: _Terminal, pid: int, thread: str, calls: _Calls) -> str:
    """Return for what a thread waits: "key", "other" for a child or another thread, or "" if it may print."""
    with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as file:
        number, *words = file.read().split()
    if len(words) < 6:  # it runs, or is not in a system call
        return ""
    call, values = int(number), [int(word, 16) for word in words[:6]]
    if call in calls.waits or (call == calls.futex and values[3] == _FOREVER):
        return "other"
    reads = call == calls.read and terminal.is_open_as(pid, values[0])
    selects = call in calls.selects and values[0] == 1 and values[4] == _FOREVER and terminal.is_open_as(pid, 0)
    return "key" if reads or selects else ""


class _Process(NamedTuple):
    """Holds what /proc says about one process."""

    state: str
    parent: int
    group: int

    @classmethod
    def of(cls, pid: int) -> "_Process":
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, parent, group, *_ = file.read().rpartition(") ")[2].split()
        return cls(state, int(parent), int(group))


def _below(pid: int) -> Iterator[int]:
    """Yield every process below one, also those whose parents have ended."""
    left = [pid]
    while left:
        parent = left.pop()
        for thread in os.listdir(f"/proc/{parent}/task"):
            try:
                with open(f"/proc/{parent}/task/{thread}/children", encoding="ascii") as file:
                    children = [int(child) for child in file.read().split()]
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESRCH):
                    raise
                continue
            yield from children
            left += children
