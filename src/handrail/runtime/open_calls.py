"""Who is inside a session: closing lets nobody in any more, and waits for those who still work with its handles."""

import os  # noqa: TID251  for the number of this process
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.model.faults import Closed


class OpenCalls:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._inside, self._owner = 0, os.getpid()
        self.closed = False

    def __enter__(self) -> None:
        with self._lock:
            if self.closed:
                raise Closed
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self.closed:
                self._left.notify_all()

    @contextmanager
    def away(self) -> Iterator[None]:
        """While somebody thinks about a question, which may take for ever; whoever comes back too late is refused."""
        self.__exit__()
        try:
            yield
        finally:
            with self._lock:
                self._inside += 1
        if self.closed:
            raise Closed

    def close(self) -> None:
        with self._lock:
            self.closed = True

    def wait_until_empty(self) -> None:
        with self._lock:
            if self._owner == os.getpid():  # in a forked child those who were inside are no more
                self._left.wait_for(lambda: self._inside == 0)
