"""Many small dealings with the file system, shared by a few threads: most of each is spent in the system."""

from collections.abc import Callable, Sequence
from typing import TypeVar

MANY = 32
"""From how many on it is worth it."""
_AT_ONCE = 4

T = TypeVar("T")
R = TypeVar("R")


def each(act: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What `act` returns for each, in their order. A failure is raised when all that was begun has ended."""
    if len(items) < MANY:
        return [act(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  most commits are small

    shares = [items[start::_AT_ONCE] for start in range(_AT_ONCE)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(lambda share: [act(item) for item in share], shares))
    return [done[number % _AT_ONCE][number // _AT_ONCE] for number in range(len(items))]
