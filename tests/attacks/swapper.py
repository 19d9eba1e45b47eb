"""Runs a process that exchanges names as fast as possible: every call must survive this race."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.forked_processes import processes, start

_EXCHANGE = 2


class Swapper:
    def __init__(self, count: Any) -> None:
        self._count = count

    @property
    def swaps(self) -> int:
        return int(self._count.value)


@contextmanager
def swapping(directory: str, *pairs: tuple[str, str]) -> Iterator[Swapper]:
    """Exchange the two names of each pair again and again while the block runs."""
    count, stop = processes.Value("Q", 0), processes.Event()
    process = start(_swap, directory, pairs, count, stop)
    try:
        yield Swapper(count)
        assert process.is_alive(), "the swapper failed"
    finally:
        stop.set()
        process.join()


def _swap(directory: str, pairs: tuple[tuple[str, str], ...], count: Any, stop: Any) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    names = [(os.fsencode(one), os.fsencode(other)) for one, other in pairs]
    while not stop.is_set():
        for _ in range(50):
            for one, other in names:
                if rename(handle, one, handle, other, _EXCHANGE):
                    raise OSError(ctypes.get_errno(), "renameat2")
        count.value += 50 * len(names)
