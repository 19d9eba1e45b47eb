"""Checks that the files are still as they were when a change was prepared."""

import errno
import os
import stat

from handrail.kernel.fs.resolver import Place
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    Conflict,
    IsDirectory,
    NotADirectory,
    NotFound,
    WriteFailed,
)
from handrail.model.files import Change, MakeDirectory, Put, Remove, RemoveDirectory, Restore, Version


def expect(change: Change, place: Place, found: os.stat_result | None, *, access: bool) -> None:
    """Raise a fault if the entry at a place is not the one that the change is based on.

    With `access`, also if the file must not be written. A file of the same version has the same access.
    """
    is_directory = found is not None and stat.S_ISDIR(found.st_mode)
    match change:
        case MakeDirectory():
            if found is not None and not is_directory:
                raise AlreadyExists(change.path)
        case RemoveDirectory():
            if not is_directory:
                raise NotFound(change.path) if found is None else NotADirectory(change.path)
        case Put() | Remove() | Restore():
            if is_directory and not (isinstance(change, Restore) and change.swaps_directory):
                raise IsDirectory(change.path)
            _expect_base(change, found)
            if access and isinstance(change, Put) and found:
                _expect_writable(place, change.path)


def _expect_base(change: Put | Remove | Restore, found: os.stat_result | None) -> None:
    """Raise a fault if the file is missing, exists unexpectedly, or has another version than the base of the change."""
    if isinstance(change, Remove) and found is None:
        raise NotFound(change.path)
    if not isinstance(change, Remove) and change.base is None and found is not None:
        raise AlreadyExists(change.path)
    if change.base is not None and (found is None or Version.of(found) != change.base.version):
        raise Conflict(change.path)


def _expect_writable(place: Place, path: str) -> None:
    if not os.access(place.name, os.W_OK, dir_fd=place.dir_fd, effective_ids=True):
        if os.fstatvfs(place.dir_fd).f_flag & os.ST_RDONLY:
            raise WriteFailed(path, os.strerror(errno.EROFS))
        raise AccessDenied(path)
