"""Holds the directories of one upper layer, under a lock: the kernel would permit two mounts of it, and mix them up.

    with Upper.open("/state/…/layer") as upper:     # makes the directory; raises LayerBusy if it is in use
        mount = upper.mount([lower_fd, …], at="/path")
    clear("/state/…/layer")                         # removes it, with what the kernel left in it

A layer is a directory of its own user with mode 0700, reached without following a link, so that no other user could
have made or can change it. It holds `upper` (the changes), `work` (the kernel's, empty between mounts) and the
lock `mounted`.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Self

from handrail.kernel.layers.deep_walk import DeepWalk
from handrail.kernel.layers.overlay import Mount
from handrail.kernel.layers.upper_entries import is_opaque

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UPPER, _WORK, _LOCK = "upper", "work", "mounted"


class LayerBusy(Exception):  # noqa: N818  the caller words it
    """Says that a process, or this one, has a layer open."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Upper:
    """Holds one upper layer and its lock. Close it after its mount, or use it in a `with` statement."""

    def __init__(self, path: str, fd: int, lock: int) -> None:
        self.path, self.fd, self._lock = path, fd, lock

    @classmethod
    def open(cls, path: str) -> Self:
        """Open a layer; make it if there is none. Raises LayerBusy, PermissionError if another user can change it."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
        fd = os.open(path, _DIRECTORY)
        try:
            _expect_own(fd, path)
            lock = _locked(fd, path)
        except BaseException:
            os.close(fd)
            raise
        made = cls(path, fd, lock)
        try:
            made.renew()
        except BaseException:
            made.close()
            raise
        return made

    def renew(self) -> None:
        """Make the directories that are missing, and an empty work directory."""
        clear_below(self.fd, _WORK)
        for name in (_UPPER, _WORK):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.fd)
        with self.upper() as fd:
            _expect_own(fd, f"{self.path}/{_UPPER}", private=False)

    @contextlib.contextmanager
    def upper(self) -> Iterator[int]:
        """Open the directory with the changes for the time of the block."""
        fd = os.open(_UPPER, _DIRECTORY, dir_fd=self.fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def mount(self, lowers: Sequence[int], at: str) -> Mount:
        """Mount this layer over others, the top one first. Raises OverlayRefused.

        The upper directory gets owner and mode of the top lower one, which the root of the view shows.
        """
        with self.upper() as upper:
            work = os.open(_WORK, _DIRECTORY, dir_fd=self.fd)
            try:
                _take_after(upper, lowers[0])
                return Mount.make(lowers, upper, work, at)
            finally:
                os.close(work)

    def is_empty(self) -> bool:
        """Return whether there are no changes."""
        with self.upper() as fd:
            return not os.listdir(fd) and not is_opaque(fd)

    def close(self) -> None:
        """Give the layer up. Its mount is closed first."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # another user of this process still has the work directory mounted
                clear_below(fd, f"{_WORK}/{_WORK}")
            os.close(fd)
            os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _expect_own(fd: int, path: str, *, private: bool = True) -> None:
    """Raise PermissionError if a directory belongs to another user, or if others can write it."""
    found = os.fstat(fd)
    if (private and found.st_uid != os.geteuid()) or (private and found.st_mode & 0o077):
        raise PermissionError(13, "it belongs to another user, or other users can reach it", path)


def _locked(fd: int, path: str) -> int:
    """Return the handle of the lock of a layer. Raises LayerBusy."""
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise LayerBusy(path) from None
    return lock


def is_busy(path: str) -> bool:
    """Return whether a process has a layer open."""
    try:
        Upper.open(path).close()
    except LayerBusy:
        return True
    except OSError:
        return False
    return False


def _take_after(upper: int, lower: int) -> None:
    """Give the top of a new layer the owner and mode of the layer below: the root of the view shows them."""
    found, now = os.stat(f"/proc/self/fd/{lower}"), os.fstat(upper)
    if (found.st_uid, found.st_gid) != (now.st_uid, now.st_gid):
        with contextlib.suppress(PermissionError):  # only root can give directories away
            os.fchown(upper, found.st_uid, found.st_gid)
    os.fchmod(upper, stat.S_IMODE(found.st_mode) & 0o1777 | 0o700)


def clear(path: str) -> None:
    """Remove a directory with everything in it, whatever the modes are. A missing directory is no error."""
    parent = os.open(os.path.dirname(path), _DIRECTORY)
    try:
        clear_below(parent, os.path.basename(path))
    finally:
        os.close(parent)


def clear_below(top: int, path: str) -> None:
    """Remove a directory by its path below an open one, with everything in it, and follow no link.

    The kernel leaves directories with mode 000 in a work directory; commands may leave others. Each gets the bits that
    its removal needs. A missing directory is no error.
    """
    name = os.path.basename(path)
    parent = top if name == path else _opened_below(top, os.path.dirname(path))
    if parent is None:
        return
    try:
        _clear(parent, name)
    finally:
        if parent != top:
            os.close(parent)


def _opened_below(top: int, path: str) -> int | None:
    walk = DeepWalk(os.dup(top))
    try:
        for name in path.split("/"):
            walk.enter(name, forced=True)
        return os.dup(walk.fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    finally:
        walk.close()


def _clear(parent: int, name: str) -> None:
    """Remove one directory. Works without recursion, because a command can nest directories without end."""
    walk, names = DeepWalk(os.dup(parent)), [name]
    try:
        walk.enter(name, forced=True)
    except FileNotFoundError:
        walk.close()
        return
    except OSError:  # it is no directory
        walk.close()
        os.unlink(name, dir_fd=parent)
        return
    try:
        while names:
            inner = _first_directory(walk.fd)
            if inner is None:
                walk.leave()
                os.rmdir(names.pop(), dir_fd=walk.fd)
            else:
                walk.enter(inner, forced=True)
                names.append(inner)
    finally:
        walk.close()


def _first_directory(fd: int) -> str | None:
    """Remove the files of a directory; return the name of a directory in it, if there is one."""
    os.fchmod(fd, 0o700)
    found = None
    with os.scandir(fd) as listed:
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                found = entry.name
            else:
                os.unlink(entry.name, dir_fd=fd)
    return found
