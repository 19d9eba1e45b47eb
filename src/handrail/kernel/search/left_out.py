"""Leaves out what lies beyond the limits of a scope, and names what it leaves out.

ripgrep searches without the limits, and only files with a match are compared with them: to ask for the size of every
file takes ripgrep a fifth of its time. So a file that is too large is named if something in it was left out.
"""

import os

from handrail.kernel.fs.small_files import open_file
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import Scope


class LeftOut:
    """Compares files with the limits of size and depth, and collects those that are beyond them."""

    def __init__(self, dir_fd: int, scope: Scope) -> None:
        self._dir_fd, self._depth, self._size = dir_fd, scope.max_depth, scope.max_file_bytes
        self.too_large: set[str] = set()
        self.too_deep: set[str] = set()

    @property
    def applies(self) -> bool:
        """True if the scope has a limit."""
        return self._depth is not None or self._size is not None

    def keep(self, paths: list[str]) -> list[str]:
        """Return the files within the limits, and collect the others."""
        return [path for path in paths if self.keeps(path)] if self.applies else paths

    def keeps(self, path: str, fd: int | None = None) -> bool:
        """Return whether a file with a match lies within the limits; collect it otherwise."""
        if self._depth is not None and path.count("/") >= self._depth:
            self.too_deep.add("/".join(path.split("/")[: self._depth]))
            return False
        if self._size is not None and (path in self.too_large or self._size_of(path, fd) > self._size):
            self.too_large.add(path)
            return False
        return True

    def is_beyond(self, path: str, fd: int | None = None) -> bool:
        """Return whether a file lies beyond the limits, and collect nothing."""
        if self._depth is not None and path.count("/") >= self._depth:
            return True
        return self._size is not None and self._size_of(path, fd) > self._size

    def _size_of(self, path: str, fd: int | None) -> int:
        try:
            if fd is not None:
                return os.fstat(fd).st_size
            return os.stat(path, dir_fd=self._dir_fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            return 0
        except OSError:  # the path is too long for one step
            return self._size_by_steps(path)

    def _size_by_steps(self, path: str) -> int:
        try:
            fd = open_file(self._dir_fd, path)
        except OSError:
            return 0
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def name_in(self, skipped: Skipped) -> Skipped:
        """Add what was collected to the names of a result. Call this once for each result."""
        for names, named in ((self.too_large, skipped.too_large), (self.too_deep, skipped.too_deep)):
            for name in names:
                named.add(name)
        return skipped
