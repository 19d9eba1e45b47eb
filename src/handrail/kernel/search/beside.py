"""Runs a walk in a thread while ripgrep searches."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[], None], name: str) -> Iterator[None]:
    """Run `work` in a thread beside the block. At the end of the block, wait for it and raise what it raised."""
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
