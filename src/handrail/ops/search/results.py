"""Results of searches: values that both engines return."""

from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from handrail.model.limits import Limits
from handrail.model.record import record


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
    rules: Named
    """Ignore files that were not followed."""

    @classmethod
    def none(cls, limits: Limits) -> "Skipped":
        return cls(*(Named(limits.skipped_names) for _ in range(5)))

    def settle(self) -> "Skipped":
        for named in (self.too_large, self.too_deep, self.unreadable, self.abandoned, self.rules):
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


@record
class Counts:
    """Matching lines by file."""

    lines: dict[str, int]
    skipped: Skipped
    files_searched: int
    complete: bool
