"""A walk by handles: every directory is opened beneath the one before it, and no link is followed.

What is ignored is decided as ripgrep decides it: `.rgignore` before `.ignore` before `.gitignore` before
`.git/info/exclude`, for each the nearest directory first. They count whether or not there is a repository, and in
nested repositories too. Files above the directory that is walked, and the person's own global ones, say nothing.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.kernel.fs.small_files import read_small
from handrail.kernel.search.engine import GaveUp, Named, Skipped, Watch
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_files import TooManyRules, Verdict, compile_ignores
from handrail.ops.search.scope import Scope

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
_UNFIT = (errno.EFBIG, errno.EINVAL)

Rules = dict[str, list[tuple[int, Callable[[str, bool], Verdict]]]]


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


def open_file(dir_fd: int, path: str, flags: int = FILE) -> int:
    """A file beneath `dir_fd`, no link on the way."""
    *parents, name = path.split("/")
    at = dir_fd
    try:
        for parent in parents:
            below = os.open(parent, _DIRECTORY, dir_fd=at)
            if at != dir_fd:
                os.close(at)
            at = below
        return os.open(name, flags, dir_fd=at)
    finally:
        if at != dir_fd:
            os.close(at)


def _key(kept: tuple[str, os.DirEntry[str]]) -> str:
    return kept[0]


class IgnoreFiles:
    """Reads the ignore files of one walk, within its limits; names those that it cannot follow."""

    def __init__(self, limits: Limits, unfit: Named) -> None:
        self._limits, self._unfit, self._left = limits, unfit, limits.ignore_rules

    def rules_of(self, fd: int, names: set[str], prefix: str, above: Rules) -> Rules:
        """Return the rules in force in a directory: its own before those from above."""
        rules = above
        for kind in _KINDS:
            if kind.partition("/")[0] in names and (text := self._text(fd, kind, prefix)):
                try:
                    found = compile_ignores(text, self._left)
                except TooManyRules:
                    self._unfit.add(prefix + kind)
                    continue
                self._left -= found.rules
                rules = {**rules, kind: [(len(prefix), found.verdict), *rules.get(kind, [])]}
        return rules

    def _text(self, fd: int, kind: str, prefix: str) -> str | None:
        try:
            file = open_file(fd, kind)
        except OSError:
            return None
        try:
            return read_small(file, self._limits.ignore_bytes).decode(errors="surrogateescape")
        except OSError as error:
            if error.errno in _UNFIT:
                self._unfit.add(prefix + kind)
            return None
        finally:
            os.close(file)


def expect_fit(dir_fd: int, limits: Limits) -> None:
    """Raise GaveUp for an ignore file of a directory that would hold ripgrep, which follows links."""
    for kind in _KINDS:
        try:
            found = os.stat(kind, dir_fd=dir_fd)
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode) and (not stat.S_ISREG(found.st_mode) or found.st_size > limits.ignore_bytes):
            raise GaveUp(f"{kind} is unfit for ripgrep")


def ignored(path: str, rules: Rules, *, is_directory: bool) -> bool:
    for kind in _KINDS:
        for start, verdict in rules.get(kind, ()):
            said = verdict(path[start:], is_directory)
            if said is not None:
                return said
    return False
