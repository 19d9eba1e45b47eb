"""Lets calls run side by side, and a save run only while none does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.fleet.fleet_errors import UnsavableError


class CallGate:
    """Counts the running calls of a workspace."""

    def __init__(self) -> None:
        self._running, self._alone = 0, False
        self._changed = threading.Condition()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Wait for a save that runs, and keep the next one away until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[None]:
        """Keep calls away until the block ends. Raises UnsavableError while calls run, unless told to wait for them."""
        with self._changed:
            if not wait and (self._running or self._alone):
                raise UnsavableError("a call of the workspace is running")
            self._changed.wait_for(lambda: not (self._running or self._alone))
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
