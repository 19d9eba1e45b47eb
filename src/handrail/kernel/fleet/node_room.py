"""Measures what a node has left for more workspaces: memory, processes, open files."""

import os
import resource
from contextlib import suppress
from typing import NamedTuple

_PLENTY = 1 << 60


class NodeRoom(NamedTuple):
    """Holds what is free."""

    memory: int
    processes: int
    files: int


def node_room() -> NodeRoom:
    """Measure what this process and the processes that it starts may still use."""
    return NodeRoom(min(_free_memory(), _free_of_group("memory")), _free_processes(), _free_files())


def _free_memory() -> int:
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return _PLENTY


def _free_of_group(kind: str) -> int:
    """Return what the control group of this process leaves, if it has a limit."""
    with suppress(OSError, ValueError):
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            group = next(line.split("::", 1)[1].strip() for line in file if line.startswith("0::"))
        place = f"/sys/fs/cgroup{group.rstrip('/')}/{kind}"
        with open(f"{place}.max", encoding="ascii") as most, open(f"{place}.current", encoding="ascii") as used:
            return int(most.read()) - int(used.read())
    return _PLENTY


def _free_processes() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:
        return _free_of_group("pids")
    own = sum(1 for name in os.listdir("/proc") if name.isdigit() and _own(name))
    return min(soft - own, _free_of_group("pids"))


def _own(pid: str) -> bool:
    with suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid == os.getuid()
    return False


def _free_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd"))


def memory_of(pid: int) -> int:
    """Return the bytes of memory that belong to a process alone, and its share of what it shares."""
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
