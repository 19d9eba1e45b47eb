"""Wraps C library calls that Python does not offer, and writes and syncs that the writer and the journal share."""

import ctypes
import errno
import os
from collections.abc import Iterable
from functools import cache
from typing import Any

_SYNC_FILE_RANGE_WRITE = 2
AT_FDCWD = -100
"""Means the current directory, where a call expects a handle."""


@cache
def libc_function(name: str) -> Any:
    """Return a function of the C library; None if the library has no function of this name."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def os_error(code: int) -> OSError:
    """Return the OSError for an error number, with the text of the system."""
    return OSError(code, os.strerror(code))


def _renameat2(source: str, target: str, dir_fd: int, flag: int) -> None:
    call = libc_function("renameat2")
    if call is None:
        raise os_error(errno.ENOSYS)
    if call(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), flag):
        raise os_error(ctypes.get_errno())


def rename_to_free_name(source: str, target: str, dir_fd: int) -> None:
    """Rename with `RENAME_NOREPLACE`, for file systems without hard links; raise FileExistsError if `target` exists."""
    _renameat2(source, target, dir_fd, 1)


def exchange_names(first: str, second: str, dir_fd: int) -> None:
    """Exchange two entries with `RENAME_EXCHANGE`: both names exist at every moment."""
    _renameat2(first, second, dir_fd, 2)


def begin_sync(fd: int) -> None:
    """Start writing the file's data to the disk without waiting, so that a later sync takes less time."""
    call = libc_function("sync_file_range")
    if call is not None:
        call(fd, ctypes.c_int64(0), ctypes.c_int64(0), _SYNC_FILE_RANGE_WRITE)


def can_sync_whole() -> bool:
    """Return whether `sync_whole` works on this system."""
    return libc_function("syncfs") is not None


def sync_whole(directories: Iterable[int]) -> None:
    """Sync the file systems of these open directories. Raises OSError if the disk has not stored all data."""
    for fd in {os.fstat(fd).st_dev: fd for fd in directories}.values():
        if libc_function("syncfs")(fd) < 0:
            raise os_error(ctypes.get_errno())


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`; a single write may store only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def pwrite_all(fd: int, data: bytes, at: int) -> None:
    """Write all of `data` at an offset; a single write may store only a part."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        at, view = at + written, view[written:]
