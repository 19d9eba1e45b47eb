"""Defines the results of searches, which both engines return."""

from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

from handrail.model.limits import Limits
from handrail.model.record import record


class Match(NamedTuple):
    """Holds one matching line."""

    path: str
    """The path relative to the searched directory, with `/` between names."""
    line: int
    content: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    cut: bool = False
    """True if the line was too long; `…` marks the missing text."""


@dataclass(slots=True)
class Named:
    """Counts names and keeps the first few in path order."""

    keep: int
    names: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        if len(self.names) > 4 * self.keep:
            self.settle()

    def settle(self) -> None:
        """Sort the names and drop those beyond `keep`."""
        self.names = nsmallest(self.keep, self.names)


@dataclass(slots=True)
class Skipped:
    """Names what a search left out."""

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
        """Return empty lists."""
        return cls(*(Named(limits.skipped_names) for _ in range(5)))

    def settle(self) -> "Skipped":
        """Settle every list and return self."""
        for named in (self.too_large, self.too_deep, self.unreadable, self.abandoned, self.rules):
            named.settle()
        return self


@dataclass(frozen=True, slots=True)
class Hidden:
    """Counts what a second look found in files that ignore files or exclusions hide."""

    count: int
    by: list[str]
    """Names what hides the files: kinds of ignore files, or the exclusions."""
    example: str
    complete: bool
    """False if the time limit ended the look; the count is then a lower bound."""


@dataclass(slots=True)
class SearchResult:
    """Holds matching lines, sorted by path (as plain strings) and line."""

    matches: list[Match]
    total: int
    """The number of matching lines, shown or not."""
    files_matched: int
    skipped: Skipped
    engine: str
    complete: bool = True
    """False if the time limit ended the search; the counts are then lower bounds."""
    files_searched: int | None = None
    hidden: Hidden | None = None
    """The matches in hidden files, if the search found nothing."""
    passed_over: list[str] | None = field(default=None, compare=False)
    """The files and directories that ignore files and exclusions hid; None if the engine does not know them."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.matches)


@dataclass(slots=True)
class FindResult:
    """Holds the files that a search by name found."""

    files: list[str]
    total: int
    skipped: Skipped
    engine: str
    complete: bool = True
    hidden: Hidden | None = None
    """The hidden files that match, if the search found nothing."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.files)


@record
class Counts:
    """Holds the number of matching lines of each file."""

    lines: dict[str, int]
    skipped: Skipped
    files_searched: int
    complete: bool
    hidden: Hidden | None = None
    """The matches in hidden files, if the search found nothing."""
