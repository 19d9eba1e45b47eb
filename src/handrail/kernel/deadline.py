"""How long a fetch may still take, and whether anybody still wants it."""

import threading
import time

from handrail.model.faults import Cancelled, FetchTimeout

# How often a wait looks up to see whether it was cancelled.
_GLANCE = 0.05


class Deadline:
    def __init__(self, url: str, seconds: float, cancel: threading.Event | None = None) -> None:
        self._url, self._seconds, self._cancel = url, seconds, cancel
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled
        left = self._end - time.monotonic()
        if left <= 0:
            raise FetchTimeout(self._url, self._seconds)
        return left

    def glance(self) -> float:
        """The seconds that a wait may take before it has to ask again."""
        return min(self.left(), _GLANCE)
