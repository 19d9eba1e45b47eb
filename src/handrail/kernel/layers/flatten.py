"""Makes one upper directory of several stacked ones."""

import contextlib
import errno
import os
import shutil
import stat

from handrail.kernel.layers.upper_entries import OPAQUE, is_opaque, is_whiteout

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
        os.setxattr(target, OPAQUE, b"y")
    for name in os.listxattr(source):
        if not name.startswith("user.overlay."):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))
    with contextlib.suppress(PermissionError):
        os.chown(target, found.st_uid, found.st_gid)
    os.chmod(target, stat.S_IMODE(found.st_mode))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
