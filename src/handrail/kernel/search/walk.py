"""Walks a directory tree by handles: opens every directory relative to its parent, and enters no link.

Ignore rules are those of ripgrep: `.rgignore` before `.ignore` before `.gitignore` before `.git/info/exclude`, and
for each of them the nearest directory first. They apply inside and outside of a repository, and in nested
repositories. Ignore files above the root of the walk, and the user's global ones, do not apply.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.ignore_files import IGNORE_FILES, IgnoreFiles, Rules, ignored
from handrail.kernel.search.engine import GaveUp
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import Scope

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(NamedTuple):
    """Holds one regular file in scope."""

    path: str
    name: str
    dir_fd: int
    """The open directory that contains the file; valid until the walk continues."""
    size: int
    """-1 if the walk does not read sizes."""


@record
class _Level:
    """Holds one open directory of the walk and its entries that were not visited yet."""

    fd: int
    prefix: str
    rules: Rules
    entries: Iterator[tuple[str, os.DirEntry[str]]]


@record
class Walk:
    """Yields the regular files of a scope, and lists what it skips in `skipped`."""

    scope: Scope
    deadline: Deadline
    skipped: Skipped
    limits: Limits
    sizes: bool = False
    """True if to skip and list files over the size limit."""
    checks_ignore_files: bool = False
    """True if to raise GaveUp for an ignore file on which ripgrep would hang."""
    links: Callable[[str], bool] | None = None
    """Returns whether a link leads to a file, so that the walk yields it; None: the walk yields no links."""
    only_links: bool = False
    """True if to yield links only."""
    _ignore_files: "IgnoreFiles" = field(init=False)

    def __post_init__(self) -> None:
        self._ignore_files = IgnoreFiles(self.limits, self.skipped.rules)

    def files(self, dir_fd: int) -> Iterator[Found]:
        """Yield every regular file in scope, sorted by path as a plain string."""
        # Open the directory again: a duplicated handle would share its read position with other walks.
        levels = [self._enter(os.open(".", _DIRECTORY, dir_fd=dir_fd), "", {})]
        try:
            while levels:
                level = levels[-1]
                step = next(level.entries, None)
                if step is None:
                    os.close(levels.pop().fd)
                    continue
                key, entry = step
                if key.endswith("/"):
                    below = self._descend(level, key, depth=len(levels))
                    if below is not None:
                        levels.append(below)
                    continue
                path = level.prefix + key
                size = self._size(entry, path) if self.sizes else -1
                if size is not None:
                    yield Found(path, key, level.fd, size)
        finally:
            for level in levels:
                os.close(level.fd)

    def _size(self, entry: os.DirEntry[str], path: str) -> int | None:
        limit = self.scope.max_file_bytes
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            return None
        if limit is not None and size > limit:
            self.skipped.too_large.add(path)
            return None
        return size

    def _descend(self, level: _Level, key: str, depth: int) -> _Level | None:
        path = level.prefix + key
        if self.scope.max_depth is not None and depth >= self.scope.max_depth:
            self.skipped.too_deep.add(path[:-1])
            return None
        self.deadline.check_cancelled()
        if self.deadline.expired():
            return None
        try:
            fd = os.open(key[:-1], _DIRECTORY, dir_fd=level.fd)
        except FileNotFoundError:
            return None
        except OSError:
            self.skipped.unreadable.add(path[:-1])
            return None
        try:
            return self._enter(fd, path, level.rules)
        except OSError:  # no handles are left in such a deep tree, or the directory is damaged
            os.close(fd)
            self.skipped.unreadable.add(path[:-1])
            return None

    def _enter(self, fd: int, prefix: str, rules: Rules) -> _Level:
        with os.scandir(fd) as entries:
            listed = list(entries)
        if self.scope.ignore_files:
            names = {entry.name for entry in listed}
            if self.checks_ignore_files:
                check_ignore_files(fd, self.limits)
            rules = self._ignore_files.rules_of(fd, names, prefix, rules)
        kept = []
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                if self._keeps_directory(prefix, entry.name, rules):
                    kept.append((entry.name + "/", entry))
            elif self._is_file(entry, prefix, rules):
                kept.append((entry.name, entry))
        kept.sort(key=_key)
        return _Level(fd, prefix, rules, iter(kept))

    def _is_file(self, entry: os.DirEntry[str], prefix: str, rules: Rules) -> bool:
        """Return whether the walk yields an entry: a file, or a link to a file, that the scope holds."""
        if entry.is_file(follow_symlinks=False):
            return not self.only_links and self._keeps_file(prefix + entry.name, rules)
        if self.links is None or not entry.is_symlink():
            return False
        path = prefix + entry.name
        return self._keeps_file(path, rules) and self.links(path)

    def _keeps_directory(self, prefix: str, name: str, rules: Rules) -> bool:
        if name in self.scope.exclusions:
            return False
        path, excluded = prefix + name, self.scope.excluded
        if self.scope.protected is not None and self.scope.protected(path):
            return False
        if excluded is not None and (excluded(path) or excluded(path + "//")):
            return False
        return not (rules and ignored(path, rules, is_directory=True))

    def _keeps_file(self, path: str, rules: Rules) -> bool:
        return self.scope.holds(path) and not (rules and ignored(path, rules, is_directory=False))


def _key(kept: tuple[str, os.DirEntry[str]]) -> str:
    return kept[0]


def check_ignore_files(dir_fd: int, limits: Limits) -> None:
    """Raise GaveUp if ripgrep, which follows links, would hang on an ignore file of this directory."""
    for kind in IGNORE_FILES:
        try:
            found = os.stat(kind, dir_fd=dir_fd)
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode) and (not stat.S_ISREG(found.st_mode) or found.st_size > limits.ignore_bytes):
            raise GaveUp(f"{kind} is unfit for ripgrep")
