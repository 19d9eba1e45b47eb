"""Knows what lies beyond the limits of a search: the large files and the deep directories of a tree.

ripgrep applies such limits silently, and to ask for the size of every file costs it a fifth of its time. So the first
search of a tree walks it, beside ripgrep, and later searches of the workspace remember what was found. They let ripgrep
search without the limits, compare each file with a match with them, and look again at what is remembered. So they name
every file in which something was left out, and nothing that is not beyond the limits.
"""

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.parallel import beside
from handrail.kernel.fs.small_files import open_file
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.ops.search.results import Named, Skipped
from handrail.ops.search.scope import Scope

_NAMES = 10_000
"""The most names that are remembered of one tree."""
_SURVEYS = 16
_READ_AT_ONCE = 64 << 20
"""If the large files of a tree have more bytes together, ripgrep keeps the limit of size itself."""


class Survey(NamedTuple):
    """Holds the large files and the deep directories of a tree."""

    too_large: list[str]
    too_deep: list[str]
    large_bytes: int
    made_at: float

    @property
    def is_costly(self) -> bool:
        """True if to read the large files takes longer than to ask for the size of every file."""
        return self.large_bytes > _READ_AT_ONCE


class Surveys:
    """Remembers the surveys of one workspace for a while."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[object, Survey] = {}

    def recall(self, dir_fd: int, scope: Scope) -> Survey | None:
        """Return what is remembered of a tree; None if nothing is, or if it is too old."""
        known = self._known.get(_key(dir_fd, scope))
        too_old = known is not None and time.monotonic() > known.made_at + self._limits.search_survey_seconds
        return None if too_old else known

    @contextmanager
    def made_beside(self, dir_fd: int, scope: Scope, deadline: Deadline) -> Iterator[Skipped]:
        """Walk the tree in another thread during the block; yield what the scope leaves out, complete at the end."""
        whole = replace(scope, include=(), kinds=())
        skipped, found = Skipped.none(self._limits), Skipped.none(self._limits)
        found.too_large, found.too_deep = Named(_NAMES), Named(_NAMES)
        key, made_at = _key(dir_fd, scope), time.monotonic()

        def walk() -> None:
            for _ in Walk(whole, deadline, found, self._limits, sizes=scope.max_file_bytes is not None).files(dir_fd):
                pass

        with beside(walk, "handrail-survey"):
            yield skipped
        _name(skipped, (path for path in found.too_large.names if scope.holds(path)), found.too_deep.names)
        if max(found.too_large.count, found.too_deep.count) <= _NAMES and not deadline.expired():
            large_bytes = sum(_size(dir_fd, path) for path in found.too_large.names)
            if len(self._known) >= _SURVEYS:
                self._known.clear()
            self._known[key] = Survey(found.too_large.names, found.too_deep.names, large_bytes, made_at)


class LeftOut:
    """Compares files with the limits of a scope, and collects those that are beyond them."""

    def __init__(self, dir_fd: int, scope: Scope) -> None:
        self._dir_fd, self._scope = dir_fd, scope
        self._too_large: set[str] = set()
        self._too_deep: set[str] = set()

    def keep(self, paths: list[str]) -> list[str]:
        """Return the files within the limits, and collect the others."""
        return [path for path in paths if self.keeps(path)]

    def keeps(self, path: str) -> bool:
        """Return whether a file lies within the limits; collect it otherwise."""
        depth, size = self._scope.max_depth, self._scope.max_file_bytes
        if depth is not None and path.count("/") >= depth:
            self._too_deep.add("/".join(path.split("/")[:depth]))
            return False
        if size is not None and _size(self._dir_fd, path) > size:
            self._too_large.add(path)
            return False
        return True

    def skipped(self, survey: Survey, limits: Limits) -> Skipped:
        """Return what was collected, and what is remembered of the tree and still true."""
        skipped, size, protected = Skipped.none(limits), self._scope.max_file_bytes or 0, self._scope.protected
        remembered = (path for path in survey.too_large if self._scope.holds(path))
        self._too_large.update(path for path in remembered if _size(self._dir_fd, path) > size)
        deep = (path for path in survey.too_deep if protected is None or not protected(path))
        self._too_deep.update(path for path in deep if _is_directory(self._dir_fd, path))
        _name(skipped, self._too_large, self._too_deep)
        return skipped


@contextmanager
def listed_skips(dir_fd: int, scope: Scope, deadline: Deadline, limits: Limits) -> Iterator[Skipped]:
    """Yield the files over the size limit and directories beyond the depth limit; complete when the block ends."""
    if scope.has_limits:
        with Surveys(limits).made_beside(dir_fd, scope, deadline) as skipped:
            yield skipped
    else:
        yield Skipped.none(limits)


def _key(dir_fd: int, scope: Scope) -> object:
    found = os.fstat(dir_fd)
    limits = scope.max_depth, scope.max_file_bytes
    return found.st_dev, found.st_ino, scope.exclude, scope.fold_case, scope.ignore_files, scope.exclusions, limits


def _name(skipped: Skipped, too_large: Iterable[str], too_deep: Iterable[str]) -> None:
    for path in too_large:
        skipped.too_large.add(path)
    for path in too_deep:
        skipped.too_deep.add(path)


def _size(dir_fd: int, path: str) -> int:
    """Return the size of a file; 0 if it is gone."""
    try:
        return os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_size
    except OSError as error:
        return _size_by_steps(dir_fd, path) if error.errno == errno.ENAMETOOLONG else 0


def _size_by_steps(dir_fd: int, path: str) -> int:
    try:
        fd = open_file(dir_fd, path)
    except OSError:
        return 0
    try:
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _is_directory(dir_fd: int, path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
