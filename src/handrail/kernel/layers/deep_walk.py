"""Walks down and up a tree by handles, with few of them open at once, however deep a command has made the tree."""

import errno
import os
import stat

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = 64
"""The most directories that one walk holds open."""

_Identity = tuple[int, int]


class DeepWalk:
    """Holds the directories from the top of a walk down to where it is; opens those far above again on the way up."""

    def __init__(self, top: int) -> None:
        """Begin in a directory, whose handle belongs to this object from now on."""
        self._above: list[tuple[int, _Identity]] = []
        self.fd = top
        """The directory where the walk is."""

    def enter(self, name: str, *, forced: bool = False) -> None:
        """Go down into a directory; with `forced`, give it the mode bits that this needs. Raises OSError."""
        inner = _opened(self.fd, name, forced=forced)
        found = os.fstat(self.fd)
        self._above.append((self.fd, (found.st_dev, found.st_ino)))
        self.fd = inner
        far = len(self._above) - _OPEN
        if far >= 0:
            fd, identity = self._above[far]
            os.close(fd)
            self._above[far] = -1, identity

    def leave(self) -> None:
        """Go up again. Raises OSError if the directory has been moved meanwhile."""
        fd, identity = self._above.pop()
        if fd < 0:
            fd = os.open("..", _DIRECTORY, dir_fd=self.fd)
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) != identity:
                os.close(fd)
                raise OSError(errno.ESTALE, "a directory was moved during a walk")
        os.close(self.fd)
        self.fd = fd

    def close(self) -> None:
        """Close all handles."""
        for fd in (self.fd, *(fd for fd, _ in self._above)):
            if fd >= 0:
                os.close(fd)
        self.fd, self._above = -1, []


def _opened(parent: int, name: str, *, forced: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        if not forced or not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, _DIRECTORY, dir_fd=parent)
