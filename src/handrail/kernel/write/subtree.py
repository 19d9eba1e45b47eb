"""Whole directories, where a name becomes one or ceases to be one: built aside, compared, taken away."""

import errno
import os
import stat

from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import write_all
from handrail.model.files import Node, Version, kind_of, mode_for

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def build(dir_fd: int, name: str, node: Node, *, sync: bool) -> None:
    """Make a name that is free what `node` says, with all that is in it."""
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
    """Whether what stands there is what was looked at, and nothing was put beside it."""
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
    """Take away what is ours, whatever it is."""
    found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=dir_fd)
        return
    fd = os.open(name, _DIRECTORY, dir_fd=dir_fd)
    try:
        if found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IRWXU)  # else nothing could be taken out of it
        for each in os.listdir(fd):
            remove(fd, each)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=dir_fd)


def drop_names(names: tuple[str, ...], fd: int, *, whole: bool) -> None:
    """Remove second names; with `whole`, those of whole directories too."""
    for name in names:
        try:
            if whole:
                remove(fd, name)
            else:
                os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, IsADirectoryError):
            pass  # a directory of this name is else none of ours
        except OSError as error:  # a disk that is read-only says so of names that are not there, too
            if error.errno != errno.EROFS or Place(fd, name, "").stat() is not None:
                raise
