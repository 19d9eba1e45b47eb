"""Builds, compares and removes whole directories, for changes that replace a file by a directory or the reverse."""

import errno
import os
import stat

from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import write_all
from handrail.model.files import Node, Version, kind_of, mode_for

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def build(dir_fd: int, name: str, node: Node, *, sync: bool) -> None:
    """Create `node` with all its content under a name that does not exist."""
    if node.kind == "link":
        os.symlink(os.fsdecode(node.data), name, dir_fd=dir_fd)
        return
    if node.kind == "directory":
        os.mkdir(name, 0o700, dir_fd=dir_fd)
    fd = os.open(name, _DIRECTORY if node.kind == "directory" else _NEW, 0o600, dir_fd=dir_fd)
    try:
        for each, inner in node.inside:
            build(fd, each, inner, sync=sync)
        write_all(fd, node.data)
        os.fchmod(fd, node.mode | stat.S_IRWXU if node.kind == "directory" else mode_for(node))
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def is_still(dir_fd: int, name: str, node: Node) -> bool:
    """Return whether an entry is still the one in `node`, with no other files in its directories."""
    found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if node.kind != "directory":
        return Version.of(found) == node.version
    if kind_of(found.st_mode) != "directory":
        return False
    fd = os.open(name, _DIRECTORY, dir_fd=dir_fd)
    try:
        return set(os.listdir(fd)) == {each for each, _ in node.inside} and all(
            is_still(fd, each, inner) for each, inner in node.inside
        )
    finally:
        os.close(fd)


def remove(dir_fd: int, name: str) -> None:
    """Remove a file, a link or a whole directory."""
    found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=dir_fd)
        return
    fd = os.open(name, _DIRECTORY, dir_fd=dir_fd)
    try:
        if found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IRWXU)  # otherwise nothing could be removed from it
        for each in os.listdir(fd):
            remove(fd, each)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=dir_fd)


def drop_names(names: tuple[str, ...], fd: int, *, whole: bool) -> None:
    """Remove temporary and second names; with `whole`, also whole directories."""
    for name in names:
        try:
            if whole:
                remove(fd, name)
            else:
                os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, IsADirectoryError):
            pass  # without `whole`, a directory of this name does not belong to the commit
        except OSError as error:  # a read-only file system reports this error also for names that do not exist
            if error.errno != errno.EROFS or Place(fd, name, "").stat() is not None:
                raise
