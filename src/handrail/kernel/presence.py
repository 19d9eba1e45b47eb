"""Who is inside a session: closing lets nobody in any more, and waits for those who still work with its handles."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.faults import Closed


class Presence:
    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside, self._owner = 0, os.getpid()
        self.closed = False

    def __enter__(self) -> None:
        with self._changed:
            if self.closed:
                raise Closed
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    @contextmanager
    def away(self) -> Iterator[None]:
        """While somebody thinks about a question, which may take for ever; whoever comes back too late is refused."""
        self.__exit__()
        try:
            yield
        finally:
            with self._changed:
                self._inside += 1
        if self.closed:
            raise Closed

    def close(self) -> None:
        with self._changed:
            self.closed = True

    def wait_until_empty(self) -> None:
        with self._changed:
            if self._owner == os.getpid():  # in a forked child those who were inside are no more
                self._changed.wait_for(lambda: self._inside == 0)
