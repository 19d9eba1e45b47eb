"""Walks the upper directories of overlays, and makes one upper of several.

The kernel marks a deleted name with a character device 0:0, and a directory that hides the one below with the
attribute `user.overlay.opaque`. A command cannot make these marks: the kernel escapes such attributes inside an
overlay, and the sandbox has no right to make devices.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator

from handrail.kernel.layers.directory_stack import DirectoryStack

_OPAQUE = "user.overlay.opaque"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_whiteout(found: os.stat_result) -> bool:
    """Return whether an entry of an upper says that its name is deleted."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(fd: int) -> bool:
    """Return whether a directory of an upper hides the one below."""
    try:
        return os.getxattr(f"/proc/self/fd/{fd}", _OPAQUE) in (b"y", b"x")
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
    walk = DirectoryStack(os.dup(upper))
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


def _entered(walk: DirectoryStack, name: str, path: str, *, skip: bool) -> bool:
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


def flatten(uppers: list[str], target: str) -> None:
    """Make one upper that shows the same as several stacked ones, the top one first. Files are hard links."""
    os.mkdir(target, 0o700)
    todo = [(uppers, target, False)]
    while todo:
        sources, place, closed = todo.pop()
        sources, opaque = _visible(sources)
        for name in sorted({name for each in sources for name in os.listdir(each)}):
            parts, ends = _parts(sources, name)
            if parts:
                os.mkdir(os.path.join(place, name), 0o700)
                todo.append((parts, os.path.join(place, name), ends))
            else:
                _link(_first(sources, name), os.path.join(place, name))
        _finish(sources[0], place, opaque=opaque or closed)


def _visible(sources: list[str]) -> tuple[list[str], bool]:
    """Return the directories down to the first opaque one, and whether there is one."""
    for count, each in enumerate(sources, 1):
        fd = os.open(each, _DIRECTORY)
        try:
            if is_opaque(fd):
                return sources[:count], True
        finally:
            os.close(fd)
    return sources, False


def _parts(sources: list[str], name: str) -> tuple[list[str], bool]:
    """Return the directories of this name that together make the one that is seen; none if it is no directory.

    Also return whether something else of this name, such as a mark of deletion, hides what is below them.
    """
    found: list[str] = []
    for each in sources:
        path = os.path.join(each, name)
        if os.path.isdir(path) and not os.path.islink(path):
            found.append(path)
        elif os.path.lexists(path):
            return found, True
    return found, False


def _first(sources: list[str], name: str) -> str:
    """Return the path of a name in the top directory that has it."""
    for each in sources:
        if os.path.lexists(path := os.path.join(each, name)):
            return path
    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)  # listed, but its path leads nowhere


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # the file belongs to another user, or has too many links
        found = os.lstat(source)
        if is_whiteout(found):
            os.mknod(target, stat.S_IFCHR)
        else:
            shutil.copy2(source, target, follow_symlinks=False)


def _finish(source: str, target: str, *, opaque: bool) -> None:
    """Give a directory the mode, owner, attributes and times of the top one."""
    found = os.lstat(source)
    if opaque:
        os.setxattr(target, _OPAQUE, b"y")
    for name in os.listxattr(source):
        if not name.startswith("user.overlay."):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))
    with contextlib.suppress(PermissionError):
        os.chown(target, found.st_uid, found.st_gid)
    os.chmod(target, stat.S_IMODE(found.st_mode))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
