"""What a new file takes over from the one it replaces: owner, mode, extended attributes."""

import errno
import os
import stat
from contextlib import suppress

from handrail.kernel.fs.resolver import Place

_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ACL = "system.posix_acl_access"
_CAPABILITIES = "security.capability"


def copy_metadata(fd: int, place: Place, found: os.stat_result, mode: int, *, same_content: bool) -> None:
    """Owner, mode, extended attributes and with them the ACL. Only the owner may be out of our power.

    New content gets no capabilities, as the kernel takes them from a file that is written; a new owner gets no set-id
    bit.
    """
    made = os.fstat(fd)  # its group may be the directory's
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        for uid, gid in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
            with suppress(PermissionError):
                os.fchown(fd, uid, gid)
                break
    if hasattr(os, "listxattr"):
        source = os.open(place.name, _SOURCE, dir_fd=place.dir_fd)
        try:
            _copy_attributes(source, fd, set() if same_content else {_CAPABILITIES})
        finally:
            os.close(source)
    made = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    os.fchmod(fd, mode)  # last: an ACL brings a mode of its own


def _copy_attributes(source: int, fd: int, without: set[str]) -> None:
    wanted = [name for name in _attributes(source) if name not in without]
    if _ACL in _attributes(fd) and _ACL not in wanted:
        os.removexattr(fd, _ACL)  # the directory's default, which the old file did not have
    for name in wanted:
        try:
            os.setxattr(fd, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENODATA):
                raise


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []
