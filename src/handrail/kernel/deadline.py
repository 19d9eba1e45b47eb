"""Bounds how long a search or a fetch may take, and notices that the caller cancelled it."""

import threading
import time

from handrail.model.faults import Cancelled

_CANCEL_POLL_SECONDS = 0.05
"""The longest wait before the caller's cancellation is noticed."""


class DeadlineExceeded(Exception):  # noqa: N818  the fetcher turns it into a fault
    """Says that the time is up. Not an OSError, so that no handler of network errors catches it."""


class Deadline:
    """Counts down from a number of seconds. A search asks it; a fetch lets it raise.

    A search returns the results that it has when the time is up: it calls `expired()` and `check_cancelled()`.
    A fetch has no partial result: it calls `check()` or `wait_seconds()`, which raise.
    """

    __slots__ = ("_cancel", "_end")

    def __init__(self, seconds: float, cancel: threading.Event | None = None) -> None:
        self._end = time.monotonic() + seconds
        self._cancel = cancel

    def at_most(self, seconds: float) -> "Deadline":
        """Return a deadline after these seconds, or this one if it is earlier."""
        return Deadline(min(seconds, self.seconds_left()), self._cancel)

    def seconds_left(self) -> float:
        """Return the seconds that are left; zero or less once the time is up."""
        return self._end - time.monotonic()

    def expired(self) -> bool:
        """Return True once the time is up."""
        return self.seconds_left() <= 0

    def check_cancelled(self) -> None:
        """Raise Cancelled if the caller cancelled the work."""
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled

    def check(self) -> float:
        """Return the seconds that are left. Raise Cancelled, or DeadlineExceeded once the time is up."""
        self.check_cancelled()
        left = self.seconds_left()
        if left <= 0:
            raise DeadlineExceeded
        return left

    def wait_seconds(self) -> float:
        """Return how long a wait may block before it must call this again. Raise like `check()`."""
        return min(self.check(), _CANCEL_POLL_SECONDS)
