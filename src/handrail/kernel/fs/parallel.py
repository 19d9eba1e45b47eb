"""Many small dealings with the file system, shared by a few threads: most of each is spent in the system."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

MANY = 32
"""From how many on it is worth it."""
_HELPERS = 3

T = TypeVar("T")
R = TypeVar("R")


def parallel_map(act: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """What `act` returns for each, in their order. It ends, well or with a failure, when no thread acts any more."""
    if len(items) < MANY:
        return [act(item) for item in items]
    results, waiting, failures = dict[int, R](), deque(range(len(items))), list[BaseException]()

    def share() -> None:
        try:
            while not failures and (number := _next(waiting)) is not None:
                results[number] = act(items[number])
        except BaseException as error:  # noqa: BLE001  raised below, when the others have stopped too
            failures.append(error)

    helpers = [threading.Thread(target=share, name="handrail-helper") for _ in range(_HELPERS)]
    try:
        _start(helpers)
        share()
    finally:
        _join(helpers, failures)
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(items))]


def _next(waiting: deque[int]) -> int | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _start(helpers: list[threading.Thread]) -> None:
    for helper in helpers:
        try:
            helper.start()
        except RuntimeError:  # no more threads are to be had: those that there are do it all
            return


def _join(helpers: list[threading.Thread], failures: list[BaseException]) -> None:
    """An interrupt stops the work, and must not leave a thread behind that goes on with handles that are closed."""
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:  # noqa: BLE001  an interrupt, raised when they have stopped
                failures.append(error)
