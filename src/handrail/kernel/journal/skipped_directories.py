"""Finds git repositories in the directories that the scan does not enter (`node_modules`, ignored directories).

Lists each directory once, the shallow ones first, up to a limit; reads no files. Afterwards it lists only directories
in which a name changed: inotify reports them, or their times show it.
"""

import os
import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from handrail.kernel.fs.small_files import open_file
from handrail.kernel.journal.inotify import NAMES, Watcher

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TICK_NS = 20_000_000
"""Two changes within this time may have the same timestamp."""
_LONGEST_PATH = 4096


class _KnownDirectory(NamedTuple):
    """Holds what one directory contained."""

    mark: tuple[int, int]
    """Inode and ctime; zeros if the directory changed too shortly before."""
    below: list[str]


class SkippedDirectories:
    """Knows the directories below those that the scan skips, up to a limit."""

    def __init__(self, root_fd: int, most: int, deepest: int) -> None:
        self._fd, self._most, self._deepest = root_fd, most, deepest
        self._watcher = Watcher(root_fd, 2 * most, NAMES)
        self._known: dict[str, _KnownDirectory] = {}
        self._trees: set[str] = set()
        self._tops: set[str] = set()
        self._begun = False
        self.unseen: list[str] = []
        """Directories that were not searched in the last look, because too many directories were new.

        The first look leaves them out without a note: they are the user's.
        """

    @property
    def repositories(self) -> list[str]:
        """The directories that may be git repositories, as of the last search."""
        return sorted(self._trees)

    def search(self, tops: Iterable[str]) -> None:
        """Search for repositories in these directories. Directories that are known and unchanged cost nothing."""
        tops = set(tops)
        self._forget_all_but(tops)
        touched = self._watcher.changed() if self._begun else None
        if touched is None:
            touched = set(self._known)
            self._watcher.begin()
        waiting = deque(sorted(touched & self._known.keys() | tops - self._known.keys(), key=_depth))
        left, unseen = self._most, set[str]()
        while waiting:
            path = waiting.popleft()
            before = self._known.get(path)
            if before is None:
                if not left or len(self._known) >= 2 * self._most or self._is_too_deep(path):
                    unseen.add(path)
                    continue
                left -= 1
            now = self._list(path, before)
            if now is None:
                self._forget(path)
                continue
            waiting.extend(each for each in now.below if each not in self._known)
            for gone in set(before.below).difference(now.below) if before else ():
                self._forget(gone)
        self.unseen = sorted(unseen)[:1] if self._begun else []
        self._begun = True

    def _is_too_deep(self, path: str) -> bool:
        """Return whether to open the directory takes too long, or its path is too long for git."""
        return path.count("/") >= self._deepest or len(os.fsencode(path)) > _LONGEST_PATH

    def close(self) -> None:
        """Stop watching."""
        self._watcher.close()

    def _forget_all_but(self, tops: set[str]) -> None:
        """Forget the directories that the scan enters now, or that are gone."""
        stems = tuple(f"{top}/" for top in tops)
        for path in [path for path in self._known if not f"{path}/".startswith(stems)] if self._tops != tops else ():
            self._forget(path)
        self._tops = tops

    def _forget(self, path: str) -> None:
        """Forget a directory and all in it."""
        waiting = [path]
        while waiting:
            gone = waiting.pop()
            self._trees.discard(gone)
            listed = self._known.pop(gone, None)
            waiting += listed.below if listed else ()

    def _list(self, path: str, before: _KnownDirectory | None) -> _KnownDirectory | None:
        """List a directory, if it changed; return None if it is gone."""
        try:
            fd = open_file(self._fd, path, _DIRECTORY)
        except PermissionError:
            self._trees.add(path)  # its names are not visible, but git can use a repository in it
            return before or _KnownDirectory((0, 0), [])
        except OSError:
            return None
        try:
            about, listed_at = os.fstat(fd), time.time_ns()
            mark = about.st_ino, about.st_ctime_ns
            if before is not None and before.mark == mark:
                return before
            self._watcher.add(fd, path)
            is_tree, below = False, list[str]()
            with os.scandir(fd) as entries:
                for entry in entries:
                    is_tree |= entry.name in (".git", "HEAD")
                    if entry.name != ".git" and len(below) <= self._most and entry.is_dir(follow_symlinks=False):
                        below.append(f"{path}/{entry.name}")
        except OSError:
            return None
        finally:
            os.close(fd)
        (self._trees.add if is_tree else self._trees.discard)(path)
        sure = about.st_ctime_ns + _TICK_NS < listed_at
        self._known[path] = listed = _KnownDirectory(mark if sure else (0, 0), below)
        return listed


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path
