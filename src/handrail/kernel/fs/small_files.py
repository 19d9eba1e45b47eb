"""Opens files inside an open directory without following links, and reads small files whole without blocking."""

import errno
import os
import stat

PARENT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Needs no permission to list the directory: git needs none, either."""
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_CHUNK = 1 << 16


def read_small(fd: int, most: int) -> bytes:
    """Read an open file whole. Raises OSError if it is not a regular file, or holds more than `most` bytes."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    data = b""
    while found.st_size <= most and len(data) <= most and (more := os.read(fd, min(_CHUNK, most + 1 - len(data)))):
        data += more
    if max(found.st_size, len(data)) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes")
    return data


def open_file(dir_fd: int, path: str, flags: int = FILE) -> int:
    """Open a file inside the directory `dir_fd`. Raises OSError if a component of the path is a link."""
    *parents, name = path.split("/")
    at = dir_fd
    try:
        for parent in parents:
            below = os.open(parent, PARENT, dir_fd=at)
            if at != dir_fd:
                os.close(at)
            at = below
        return os.open(name, flags, dir_fd=at)
    finally:
        if at != dir_fd:
            os.close(at)
