"""Counts running calls. After close() new calls are rejected; wait_until_empty() blocks until the running ones end."""

import os  # noqa: TID251  for the process number only
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.model.faults import Closed


class OpenCalls:
    """Counts the calls of a session. Enter it for the time of a call; raises Closed after close()."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._running, self._owner = 0, os.getpid()
        self.closed = self._held = False

    def __enter__(self) -> None:
        with self._lock:
            self._wait_for_release()
            if self.closed:
                raise Closed
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self.closed or self._held:
                self._left.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count a call while its approver is asked, which may take for ever. Raises Closed if closed then."""
        self.__exit__()
        try:
            yield
        finally:
            with self._lock:
                self._wait_for_release()
                self._running += 1
        if self.closed:
            raise Closed

    @property
    def running(self) -> int:
        """The number of running calls, without those that wait for an answer."""
        with self._lock:
            return self._running

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no new call begin during the block: such a call waits for its end."""
        with self._lock:
            self._held = True
        try:
            yield
        finally:
            with self._lock:
                self._held = False
                self._left.notify_all()

    def _wait_for_release(self) -> None:
        self._left.wait_for(lambda: not self._held)

    def close(self) -> None:
        """Reject new calls from now on."""
        with self._lock:
            self.closed = True

    def wait_until_empty(self) -> None:
        """Block until no call runs."""
        with self._lock:
            if self._owner == os.getpid():  # a forked child has no threads that could end the calls
                self._left.wait_for(lambda: self._running == 0)
