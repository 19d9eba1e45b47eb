"""A walk by handles: every directory is opened beneath the one before it, and no link is followed.

What is ignored is decided as ripgrep decides it: `.rgignore` before `.ignore` before `.gitignore` before
`.git/info/exclude`, for each the nearest directory first. They count whether or not there is a repository, and in
nested repositories too. Files above the directory that is walked, and the person's own global ones, say nothing.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.kernel.fs.ignore_rules import IGNORE_FILES, IgnoreFiles, Rules, ignored
from handrail.kernel.search.engine import GaveUp, Watch
from handrail.model.limits import Limits
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import Scope

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Found(NamedTuple):
    path: str
    name: str
    dir_fd: int
    """The open directory that the file lies in, until the walk goes on."""
    size: int
    """-1 where nobody asked."""


@dataclass(slots=True)
class _Level:
    fd: int
    prefix: str
    rules: Rules
    entries: Iterator[tuple[str, os.DirEntry[str]]]


@dataclass(slots=True)
class Walk:
    scope: Scope
    watch: Watch
    skipped: Skipped
    limits: Limits
    sizes: bool = False
    """Whether files over the size limit are left out and named."""
    wary: bool = False
    """Whether an ignore file that would hold ripgrep ends the walk."""
    _ignore_files: "IgnoreFiles" = field(init=False)

    def __post_init__(self) -> None:
        self._ignore_files = IgnoreFiles(self.limits, self.skipped.rules)

    def files(self, dir_fd: int) -> Iterator[Found]:
        """Every regular file in scope, in the order of their paths as plain strings."""
        # Opened anew: a copy of the handle would share its place in the directory with other walks.
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
        self.watch.check()
        if self.watch.expired():
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
        except OSError:  # so deep that there are no handles left, or broken
            os.close(fd)
            self.skipped.unreadable.add(path[:-1])
            return None

    def _enter(self, fd: int, prefix: str, rules: Rules) -> _Level:
        with os.scandir(fd) as entries:
            listed = list(entries)
        if self.scope.ignore_files:
            names = {entry.name for entry in listed}
            if self.wary:
                expect_fit(fd, self.limits)
            rules = self._ignore_files.rules_of(fd, names, prefix, rules)
        kept = []
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                if self._keeps_directory(prefix, entry.name, rules):
                    kept.append((entry.name + "/", entry))
            elif entry.is_file(follow_symlinks=False) and self._keeps_file(prefix + entry.name, rules):
                kept.append((entry.name, entry))
        kept.sort(key=_key)
        return _Level(fd, prefix, rules, iter(kept))

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


def expect_fit(dir_fd: int, limits: Limits) -> None:
    """Raise GaveUp for an ignore file of a directory that would hold ripgrep, which follows links."""
    for kind in IGNORE_FILES:
        try:
            found = os.stat(kind, dir_fd=dir_fd)
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode) and (not stat.S_ISREG(found.st_mode) or found.st_size > limits.ignore_bytes):
            raise GaveUp(f"{kind} is unfit for ripgrep")
