"""Calls of the C library that Python does not offer, and writes and syncs that the writer and the journal share."""

import ctypes
import errno
import os
from collections.abc import Iterable
from functools import cache
from typing import Any

_BEGIN = 2  # SYNC_FILE_RANGE_WRITE


@cache
def libc_function(name: str) -> Any:
    """One of the C library's own; None where it has none of this name."""
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def os_error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _renameat2(source: str, target: str, dir_fd: int, flag: int) -> None:
    call = libc_function("renameat2")
    if call is None:
        raise os_error(errno.ENOSYS)
    if call(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), flag):
        raise os_error(ctypes.get_errno())


def rename_to_free_name(source: str, target: str, dir_fd: int) -> None:
    """`renameat2(RENAME_NOREPLACE)`, for file systems without hard links."""
    _renameat2(source, target, dir_fd, 1)


def exchange_names(one: str, other: str, dir_fd: int) -> None:
    """`renameat2(RENAME_EXCHANGE)`: what stood under each name stands under the other, and neither is ever free."""
    _renameat2(one, other, dir_fd, 2)


def begin_sync(fd: int) -> None:
    """Let the disk begin with what was written, so that there is less to wait for when it is synced."""
    call = libc_function("sync_file_range")
    if call is not None:
        call(fd, ctypes.c_int64(0), ctypes.c_int64(0), _BEGIN)


def can_sync_whole() -> bool:
    return libc_function("syncfs") is not None


def sync_whole(directories: Iterable[int]) -> None:
    """All that was written to the file systems of these open directories is on the disk, or it raises."""
    for fd in {os.fstat(fd).st_dev: fd for fd in directories}.values():
        if libc_function("syncfs")(fd) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
