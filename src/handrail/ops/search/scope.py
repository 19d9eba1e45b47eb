"""What a search is asked. Every dialect says it, so it is light to import; what it answers is in `found.py`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from handrail.ops.glob.globs import Glob, compile_exclusions, compile_globs
from handrail.ops.glob.ignore_files import DEFAULT_EXCLUSIONS


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
