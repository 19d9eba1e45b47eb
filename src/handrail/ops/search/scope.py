"""Defines search requests. Every dialect imports this module, so it stays light; the results are in `results.py`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from handrail.ops.glob.globs import Glob, compile_exclusions, compile_globs
from handrail.ops.glob.ignore_rules import NEVER_SEARCHED


@dataclass(frozen=True)
class Scope:
    """Selects the files of a search. Hidden files are included; links are not followed; binary files are skipped."""

    include: tuple[str, ...] = ()
    """Globs; a file must match one of them. Empty: every file fits."""
    exclude: tuple[str, ...] = ()
    """Globs for files and directories to leave out; a glob without a slash fits at any depth."""
    anywhere: bool = True
    """True if an `include` without a slash fits a name at any depth."""
    fold_case: bool = False
    ignore_files: bool = True
    exclusions: tuple[str, ...] = NEVER_SEARCHED
    """Names of directories that are not entered."""
    max_depth: int | None = None
    """The number of levels that are searched; 1 means the files of the directory itself."""
    max_file_bytes: int | None = None
    protected: Callable[[str], bool] | None = None
    """Returns whether a path is protected; a protected path is always left out."""
    protected_handle: Callable[[int], bool] | None = None
    """Returns whether an open file is protected, wherever another process moved it; no line of it is shown."""
    kinds: tuple[str, ...] = ()
    """Globs of a file type; a file must match one of them, too. Empty: every file fits."""

    @property
    def has_limits(self) -> bool:
        """True if the scope leaves out files because of their size or depth."""
        return self.max_depth is not None or self.max_file_bytes is not None

    def unhidden(self) -> "Scope":
        """Return the same scope without ignore files and exclusions; only `.git` stays hidden."""
        return replace(self, ignore_files=False, exclusions=NEVER_SEARCHED)

    @cached_property
    def included(self) -> Glob | None:
        """The compiled `include`; None if every file fits."""
        if not self.include:
            return None
        return compile_globs(self.include, anywhere=self.anywhere, fold_case=self.fold_case)

    @cached_property
    def of_kind(self) -> Glob | None:
        """The compiled `kinds`; None if every file fits."""
        return compile_globs(self.kinds, anywhere=True) if self.kinds else None

    @cached_property
    def excluded(self) -> Callable[[str], object] | None:
        """The compiled `exclude`; None if it is empty."""
        return compile_exclusions(self.exclude, fold_case=self.fold_case) if self.exclude else None

    def shows(self, fd: int) -> bool:
        """Return whether a result may show lines of an open file."""
        return self.protected_handle is None or not self.protected_handle(fd)

    def holds(self, path: str) -> bool:
        """Return whether a file passes include, exclude and protection."""
        if self.protected is not None and self.protected(path):
            return False
        if self.included is not None and not self.included.matches(path):
            return False
        if self.of_kind is not None and not self.of_kind.matches(path):
            return False
        return self.excluded is None or not self.excluded(path)

    def held(self, paths: list[str]) -> list[str]:
        """Return the files that pass include, exclude and protection."""
        if self.protected is not None:
            paths = [path for path in paths if not self.protected(path)]
        if self.included is not None:
            matches = self.included.matches
            paths = [path for path in paths if matches(path)]
        if self.of_kind is not None:
            fits = self.of_kind.matches
            paths = [path for path in paths if fits(path)]
        if self.excluded is not None:
            excluded = self.excluded
            paths = [path for path in paths if not excluded(path)]
        return paths


class SearchRequest(NamedTuple):
    """Asks for lines that match a pattern."""

    pattern: str
    literal: bool = False
    case_sensitive: bool = True
    context: int = 0
    """Lines shown before and after each match."""
    limit: int = 100
    scope: Scope = Scope()
    count_searched: bool = False
    """True if the result must say how many text files were read."""
    multiline: bool = False
    """True if a match may span lines, and a dot matches a line end."""
    exact: bool = True
    """True if the result must hold the total; otherwise the search may stop at its limit."""


class FindRequest(NamedTuple):
    """Asks for files by name. The scope's `include` holds the globs."""

    scope: Scope
    sort: Literal["path", "time"] = "path"
    """The order: by path, or by time (newest first, ties by path)."""
    limit: int = 100
    leads_to_file: Callable[[str], bool] | None = None
    """Returns whether a symbolic link leads to a file inside the root; None: links are left out."""
