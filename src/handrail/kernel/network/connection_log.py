"""Remembers the connections of a session: the last refused ones for answers, and all of them for the session log."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from handrail.kernel.network.refusals import ConnectionRecord

_KEPT = 100
"""The refused connections that are remembered."""


class ConnectionLog:
    """Collects what the proxies of one session report. `write` gets the facts of each connection that has ended."""

    def __init__(self, most: int, write: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self._left, self._write = most, write
        self._lock, self._refused, self._count = threading.Lock(), deque[ConnectionRecord](maxlen=_KEPT), 0

    @property
    def refusals(self) -> int:
        """The number of refused connections so far."""
        return self._count

    def refused(self, record: ConnectionRecord) -> None:
        """Remember a refused connection, before its client learns of it."""
        with self._lock:
            self._refused.append(record)
            self._count += 1

    def refused_since(self, count: int) -> list[ConnectionRecord]:
        """Return the last connections that were refused after the first `count` ones."""
        with self._lock:
            new = min(self._count - count, len(self._refused))
            return list(self._refused)[-new:] if new else []

    def ended(self, record: ConnectionRecord) -> None:
        """Write a connection to the session log; of too many, write only that there are more."""
        with self._lock:
            self._left -= 1
            left = self._left
        if left >= 0:
            self._write(record.facts)
        elif left == -1:
            self._write({"more": "further connections are not logged"})
