"""What a search is asked and what it answers: values that both engines take and give."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nsmallest
from typing import Literal, NamedTuple, Protocol

from handrail.faults import Cancelled
from handrail.limits import Limits
from handrail.ops.globs import Glob, compile_exclusions, compile_globs
from handrail.ops.ignores import DEFAULT_EXCLUSIONS
from handrail.ops.patterns import Pattern
from handrail.structs import struct


@dataclass(frozen=True)
class Scope:
    """Which files are looked at. Hidden ones are; links are not followed; binary ones are passed over."""

    include: tuple[str, ...] = ()
    """Globs, of which a file must match one; none: every file."""
    exclude: tuple[str, ...] = ()
    """Globs for files and directories to leave out, at any depth where they have no slash."""
    anywhere: bool = True
    """An `include` without a slash is a name at any depth."""
    fold_case: bool = False
    ignore_files: bool = True
    exclusions: tuple[str, ...] = DEFAULT_EXCLUSIONS
    """Names of directories that are not entered."""
    max_depth: int | None = None
    """How many levels are looked at; 1 is the directory's own files."""
    max_file_bytes: int | None = None
    protected: Callable[[str], bool] | None = None
    """Whether a file or directory is kept from all tools, whatever else the scope says."""

    def unhidden(self) -> "Scope":
        """The same with what ignore files and the default exclusions leave out."""
        return replace(self, ignore_files=False, exclusions=())

    @cached_property
    def included(self) -> Glob | None:
        if not self.include:
            return None
        return compile_globs(self.include, anywhere=self.anywhere, fold_case=self.fold_case)

    @cached_property
    def excluded(self) -> Callable[[str], object] | None:
        return compile_exclusions(self.exclude, fold_case=self.fold_case) if self.exclude else None

    def holds(self, path: str) -> bool:
        """Whether include, exclude and protection let a file pass."""
        if self.protected is not None and self.protected(path):
            return False
        if self.included is not None and not self.included.matches(path):
            return False
        return self.excluded is None or not self.excluded(path)

    def held(self, paths: list[str]) -> list[str]:
        if self.protected is not None:
            paths = [path for path in paths if not self.protected(path)]
        if self.included is not None:
            matches = self.included.matches
            paths = [path for path in paths if matches(path)]
        if self.excluded is not None:
            excluded = self.excluded
            paths = [path for path in paths if not excluded(path)]
        return paths


class SearchRequest(NamedTuple):
    pattern: str
    literal: bool = False
    case_sensitive: bool = True
    context: int = 0
    """Lines shown before and after each match."""
    limit: int = 100
    scope: Scope = Scope()
    count_searched: bool = False
    """Whether the answer must say how many text files were read."""
    exact: bool = True
    """Whether the total must be known; otherwise the search may end with its limit."""


class FindRequest(NamedTuple):
    """Files by name. The scope's `include` holds the globs."""

    scope: Scope
    sort: Literal["path", "time"] = "path"
    """By path, or the newest first and ties by path."""
    limit: int = 100


class Match(NamedTuple):
    path: str
    """Relative to the directory searched, `/` between names."""
    line: int
    content: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    cut: bool = False
    """The line was too long: what is missing is marked with `…`."""


@dataclass(slots=True)
class Named:
    """Names, the first few in path order, and how many there were."""

    keep: int
    names: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        if len(self.names) > 4 * self.keep:
            self.settle()

    def settle(self) -> None:
        self.names = nsmallest(self.keep, self.names)


@dataclass(slots=True)
class Skipped:
    too_large: Named
    too_deep: Named
    """Directories that were not entered."""
    unreadable: Named
    abandoned: Named
    """Files in which the pattern took too long."""

    @classmethod
    def none(cls, limits: Limits) -> "Skipped":
        return cls(*(Named(limits.skipped_names) for _ in range(4)))

    def settle(self) -> "Skipped":
        for named in (self.too_large, self.too_deep, self.unreadable, self.abandoned):
            named.settle()
        return self


@dataclass(slots=True)
class SearchResult:
    """Matching lines by path and line. Paths are compared as plain strings."""

    matches: list[Match]
    total: int
    """Matching lines, shown or not."""
    files_matched: int
    skipped: Skipped
    engine: str
    complete: bool = True
    """Otherwise the deadline struck, and the counts are lower bounds."""
    files_searched: int | None = None
    all_hidden: bool = False
    """There was nothing to search: ignore files and exclusions hide every file that was asked for."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.matches)


@dataclass(slots=True)
class FindResult:
    files: list[str]
    total: int
    skipped: Skipped
    engine: str
    complete: bool = True
    all_hidden: bool = False
    """Nothing was found, but ignore files and exclusions hide files that match."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.files)


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


@struct
class Counts:
    """Matching lines by file."""

    lines: dict[str, int]
    skipped: Skipped
    files_searched: int
    complete: bool


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
