"""Copies owner, mode and extended attributes from an old file to the new file that replaces it."""

import errno
import os
import stat
from contextlib import suppress

from handrail.kernel.fs.resolver import Place

_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ACL = "system.posix_acl_access"
_CAPABILITIES = "security.capability"


def copy_metadata(fd: int, place: Place, found: os.stat_result, mode: int, *, same_content: bool) -> None:
    """Copy the owner, the mode and the extended attributes, which include the ACL, to the new file `fd`.

    If the process may not change the owner, the new file keeps its own owner and gets no set-id bit. Attributes that
    the process may not set are skipped. New content gets no capabilities: the kernel, too, removes them when a process
    writes to a file.
    """
    made = os.fstat(fd)  # its group may come from the directory
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        for uid, gid in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
            with suppress(PermissionError):
                os.fchown(fd, uid, gid)
                break
        made = os.fstat(fd)
    if hasattr(os, "listxattr"):
        _copy_attributes(place, fd, set() if same_content else {_CAPABILITIES})
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    os.fchmod(fd, mode)  # last, because setting an ACL changes the mode


def _copy_attributes(place: Place, fd: int, without: set[str]) -> None:
    wanted: list[str] | None
    try:
        wanted = [name for name in _attributes(f"/proc/self/fd/{place.dir_fd}/{place.name}") if name not in without]
    except FileNotFoundError:  # no such file, or no /proc: opening the file will tell
        wanted = None
    if wanted or wanted is None:  # most files have none, and need not be opened
        source = os.open(place.name, _SOURCE, dir_fd=place.dir_fd)
        try:
            wanted = [name for name in _attributes(source) if name not in without]
            for name in wanted:
                _copy(source, fd, name)
        finally:
            os.close(source)
    if _ACL not in wanted and _ACL in _attributes(fd):
        os.removexattr(fd, _ACL)  # the directory's default ACL, which the old file did not have


def _copy(source: int, fd: int, name: str) -> None:
    try:
        os.setxattr(fd, name, os.getxattr(source, name))
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENODATA):
            raise


def _attributes(file: int | str) -> list[str]:
    try:
        return os.listxattr(file, follow_symlinks=isinstance(file, int))
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []
