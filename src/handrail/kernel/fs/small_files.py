"""Small files that others wrote: read whole without waiting, or refused for what they are."""

import errno
import os
import stat

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
