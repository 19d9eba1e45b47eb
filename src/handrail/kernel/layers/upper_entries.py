"""Walks the upper directory of an overlay: every entry, the deleted names, and the directories that hide others.

The kernel marks a deleted name with a character device 0:0, and a directory that hides the one below with the
attribute `user.overlay.opaque`. A command cannot make these marks: the kernel escapes such attributes inside an
overlay, and the sandbox has no right to make devices.
"""

import os
import stat
from collections.abc import Callable, Iterator

from handrail.kernel.layers.deep_walk import DeepWalk

OPAQUE = "user.overlay.opaque"


def is_whiteout(found: os.stat_result) -> bool:
    """Return whether an entry of an upper says that its name is deleted."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(fd: int) -> bool:
    """Return whether a directory of an upper hides the one below."""
    try:
        return os.getxattr(f"/proc/self/fd/{fd}", OPAQUE) in (b"y", b"x")
    except OSError:
        return False


Entered = Callable[[str, os.stat_result], bool]


def _every(_path: str, _found: os.stat_result) -> bool:
    return True


def entries(
    upper: int, enters: Entered = _every, *, skip_unreadable: bool = False
) -> Iterator[tuple[str, os.stat_result, bool]]:
    """Yield the path and the stat result of every entry of an upper, and whether it hides all that is below it.

    A directory comes before its entries; `enters` says of each entry whether it counts. An entry hides what is below if
    it is no directory, or an opaque one. What is deleted during the walk is left out. Raises OSError for a directory
    that this user cannot read, unless `skip_unreadable` leaves its entries out.
    """
    walk = DeepWalk(os.dup(upper))
    stack = [("", iter(sorted(os.listdir(upper))))]
    try:
        while stack:
            stem, names = stack[-1]
            name = next(names, None)
            if name is None:
                stack.pop()
                if stack:
                    walk.leave()
                continue
            path = stem + name
            found = _stat(walk.fd, name, path, skip=skip_unreadable)
            if found is None or not enters(path, found):
                continue
            if not stat.S_ISDIR(found.st_mode):
                yield path, found, True
            elif _entered(walk, name, path, skip=skip_unreadable):
                stack.append((f"{path}/", iter(sorted(os.listdir(walk.fd)))))
                yield path, found, is_opaque(walk.fd)
            elif skip_unreadable:
                yield path, found, False
    finally:
        walk.close()


def _stat(fd: int, name: str, path: str, *, skip: bool) -> os.stat_result | None:
    """Return what is known about an entry; None if it is gone, or unreadable and to be skipped."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        if skip:
            return None
        raise PermissionError(error.errno, error.strerror, path) from None


def _entered(walk: DeepWalk, name: str, path: str, *, skip: bool) -> bool:
    """Go down into a directory. Returns False if it is gone, or unreadable and to be skipped."""
    try:
        walk.enter(name)
    except (FileNotFoundError, NotADirectoryError):  # deleted, or something else by now
        return False
    except PermissionError as error:
        if skip:
            return False
        raise PermissionError(error.errno, error.strerror, path) from None
    return True
