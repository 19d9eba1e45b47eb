"""Shares many small tasks among threads, and runs one task while another runs."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

MANY = 32
"""The smallest number of items for which threads are faster."""
_HELPERS = 3

T = TypeVar("T")
R = TypeVar("R")


def parallel_map(act: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Call `act` with each item and return the results in order.

    Uses threads for at least `MANY` items. Returns, or raises the first failure, only after all threads have stopped.
    """
    if len(items) < MANY:
        return [act(item) for item in items]
    results, waiting, failures = dict[int, R](), deque(range(len(items))), list[BaseException]()

    def share() -> None:
        try:
            while not failures and (number := _next(waiting)) is not None:
                results[number] = act(items[number])
        except BaseException as error:  # noqa: BLE001  raised below, after the other threads have stopped
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
        except RuntimeError:  # the system allows no more threads: the running ones do all the work
            return


def _join(helpers: list[threading.Thread], failures: list[BaseException]) -> None:
    """Wait for all threads, and collect interrupts.

    An interrupt stops the work, but must not leave a thread behind that uses closed handles.
    """
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as error:  # noqa: BLE001  an interrupt; raised after the threads have stopped
                failures.append(error)


@contextmanager
def beside(work: Callable[[], None], name: str) -> Iterator[None]:
    """Run `work` in a thread while the block runs. At the end of the block, wait for it and raise what it raised."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]
