"""Defines the interface of a search engine."""

from typing import Protocol

from handrail.kernel.deadline import Deadline
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, FindResult, Match, SearchResult
from handrail.ops.search.scope import FindRequest, SearchRequest


class GaveUp(Exception):  # noqa: N818  not an error: the searcher asks the other engine
    """Says that an engine has no result: ripgrep hangs, or one of its limits ended it."""


class Engine(Protocol):
    """Searches below an open directory. Every method stops at the deadline and returns the results so far."""

    name: str

    def search(self, dir_fd: int, pattern: Pattern, request: SearchRequest, deadline: Deadline) -> SearchResult:
        """Return the first matching lines in path order, at most `request.limit`."""
        ...

    def count(
        self,
        dir_fd: int,
        pattern: Pattern,
        request: SearchRequest,
        deadline: Deadline,
        *,
        places: list[str] | None = None,
    ) -> Counts:
        """Return the number of matching lines of every file that has one. An engine may search only `places`."""
        ...

    def lines(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], deadline: Deadline
    ) -> list[Match]:
        """Return the first matches of each of these files, at most `request.limit` a file."""
        ...

    def find(self, dir_fd: int, request: FindRequest, deadline: Deadline, *, any_one: bool = False) -> FindResult:
        """Return the files in scope. With `any_one`, stop after the first files that were found."""
        ...
