"""Defines what a search engine offers, and when it has to stop."""

import threading
import time
from typing import NamedTuple, Protocol

from handrail.model.faults import Cancelled
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, FindResult, Match, SearchResult
from handrail.ops.search.scope import FindRequest, SearchRequest


class Watch(NamedTuple):
    """When to stop: at a deadline with what there is, and at once when cancelled."""

    deadline: float
    cancel: threading.Event | None = None

    @classmethod
    def starting_now(cls, seconds: float, cancel: threading.Event | None = None) -> "Watch":
        return cls(time.monotonic() + seconds, cancel)

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def expired(self) -> bool:
        return self.left() <= 0

    def check(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled


class GaveUp(Exception):  # noqa: N818  not an answer: another engine gives it
    """An engine gives no answer: ripgrep hangs, or was ended by one of its limits."""


class Engine(Protocol):
    name: str

    def search(self, dir_fd: int, pattern: Pattern, request: SearchRequest, watch: Watch) -> SearchResult: ...

    def count(self, dir_fd: int, pattern: Pattern, request: SearchRequest, watch: Watch) -> Counts: ...

    def lines(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], watch: Watch
    ) -> list[Match]:
        """The first matches, at most `request.limit` of each of these files."""
        ...

    def find(self, dir_fd: int, request: FindRequest, watch: Watch, *, any_one: bool = False) -> FindResult: ...
