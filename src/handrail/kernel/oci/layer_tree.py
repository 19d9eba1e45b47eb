"""Builds the tree of one layer from the entries of its archive. No entry can reach a file outside the tree.

Names are split, and parents are opened with `openat2(RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)`, so
that links lead only to other places in the tree. The last component is never followed. Owners, extended attributes,
devices, pipes and set-user-id bits of the archive are dropped. What the layer deletes becomes what overlayfs
understands: a character device 0:0, which every user may make, or the attribute `user.overlay.opaque` on a directory.
"""

import errno
import os
import shutil
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress

from handrail.kernel.fs.resolver import openat2
from handrail.kernel.fs.syscalls import os_error, write_all
from handrail.kernel.oci.refusal import refused, shown
from handrail.kernel.oci.tar_entries import TarEntry
from handrail.model.limits import Limits

OPAQUE = "user.overlay.opaque"
WHITEOUT, OPAQUE_NAME = b".wh.", b".wh..wh..opq"
_AUFS = b".wh..wh."
"""How the names begin that a driver wrote for itself, and that say nothing about the image."""
_IN_ROOT = 0x10 | 0x02 | 0x01  # IN_ROOT | NO_MAGICLINKS | NO_XDEV
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HOW = struct.pack("=QQQ", _DIRECTORY, 0, _IN_ROOT)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_PATH, _LONGEST_NAME = 4095, 255
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_IMPLIED = 0o755
"""The mode of a directory that no entry describes."""

Parts = tuple[bytes, ...]


class LayerTree:
    """Builds the tree of one layer below an open, empty directory that only this process changes."""

    def __init__(self, root_fd: int, what: str, limits: Limits) -> None:
        self._root, self._what, self._limits = root_fd, what, limits
        self._parent: tuple[Parts, int] | None = None
        """The directory that was used last, with its handle: entries of one directory follow each other."""
        self._stale = False
        """True if a name was removed: the path of the last directory may lead elsewhere now."""
        self.hides_all = False
        """True if the layer hides everything in the layers below."""

    def add(self, entry: TarEntry, content: Iterable[bytes]) -> None:
        """Make what an entry describes. Raises ImageError for an entry that breaks a rule."""
        parts = self._parts(entry.name)
        try:
            self._add(parts, entry, content)
        except OSError as error:
            if error.errno in _OF_DISK:
                raise  # the entry is not to blame
            raise refused(self._what, f"{shown(entry.name)} cannot be made: {error.strerror}") from None

    def close(self) -> None:
        self._forget()

    def _add(self, parts: Parts, entry: TarEntry, content: Iterable[bytes]) -> None:
        if not parts:
            if entry.kind != "directory":
                raise refused(self._what, "its root is not a directory")
            os.fchmod(self._root, _directory_mode(entry.mode))
        elif parts[-1].startswith(WHITEOUT):
            self._delete(parts)
        elif entry.kind == "directory":
            self._make_directory(parts, entry.mode)
        elif entry.kind != "other":  # devices and pipes are left out
            self._replace(parts, entry, content)

    def _parts(self, name: bytes) -> Parts:
        parts = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
        why = None
        if b".." in parts:
            why = "leads out of its directory"
        elif b"\0" in name:
            why = "holds a NUL"
        elif len(name) > _LONGEST_PATH or any(len(part) > _LONGEST_NAME for part in parts):
            why = "is too long"
        elif any(part.startswith(WHITEOUT) for part in parts[:-1]):
            why = "lies in a directory that is deleted"
        elif len(parts) > self._limits.oci_depth:
            why = f"lies more than {self._limits.oci_depth} directories deep"
        if why:
            raise refused(self._what, f"the name {shown(name)} {why}")
        return parts

    # directories

    def _directory(self, parts: Parts) -> int:
        """Return a handle of a directory of the tree, which stays ours; make it and its parents if necessary."""
        if self._stale:
            self._forget()
        if not parts:
            return self._root
        if self._parent is None or self._parent[0] != parts:
            fd = self._open(parts)
            self._forget()
            self._parent = (parts, self._made(parts) if fd is None else fd)
        return self._parent[1]

    def _forget(self) -> None:
        """Close the handle of the last directory."""
        self._stale = False
        if self._parent is not None:
            os.close(self._parent[1])
            self._parent = None

    def _open(self, parts: Parts) -> int | None:
        """Open a directory; None if a part of its path does not exist, or is a whiteout."""
        fd = openat2(self._root, b"/".join(parts), _HOW)
        if fd >= 0:
            return fd
        if fd in (-errno.ENOENT, -errno.ENOTDIR):
            return None
        raise os_error(-fd)

    def _made(self, parts: Parts) -> int:
        """Make the missing directories of a path, and return a handle of the last one."""
        above = os.dup(self._root)
        for count in range(1, len(parts) + 1):
            try:
                self._fill(above, parts[count - 1])
                fd = self._open(parts[:count])
            finally:
                os.close(above)
            if fd is None:  # a file, or a link that leads nowhere in this layer
                raise os_error(errno.ENOTDIR)
            above = fd
        return above

    def _fill(self, above: int, name: bytes) -> None:
        """Make a directory if there is nothing of this name, or a whiteout; a link or file stays."""
        found = _mode(above, name)
        if found is None or stat.S_ISCHR(found):
            self._new_directory(above, name, found)

    def _new_directory(self, above: int, name: bytes, found: int | None) -> None:
        """Make a directory; replace another entry of that name. After a whiteout it hides the layers below."""
        if found is not None:
            self._remove(above, name, found)
        os.mkdir(name, _IMPLIED, dir_fd=above)
        fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            os.fchmod(fd, _IMPLIED)
            if found is not None and stat.S_ISCHR(found):
                self._hide_below(fd)
        finally:
            os.close(fd)

    def _make_directory(self, parts: Parts, mode: int) -> None:
        above = self._directory(parts[:-1])
        found = _mode(above, parts[-1])
        if found is None or not stat.S_ISDIR(found):
            self._new_directory(above, parts[-1], found)
        fd = os.open(parts[-1], _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._directory(parts[:-1]))
        os.fchmod(fd, _directory_mode(mode))
        self._forget()
        self._parent = (parts, fd)

    # files and links

    def _replace(self, parts: Parts, entry: TarEntry, content: Iterable[bytes]) -> None:
        """Make a file or a link. Of several entries with one name, the last one stays."""
        above, name = self._directory(parts[:-1]), parts[-1]
        try:
            self._make(above, name, entry, content)
        except FileExistsError:  # nothing of the content was read yet
            self._remove(above, name, _mode(above, name) or 0)
            self._make(self._directory(parts[:-1]), name, entry, content)

    def _make(self, above: int, name: bytes, entry: TarEntry, content: Iterable[bytes]) -> None:
        if entry.kind == "symlink":
            if not entry.target or b"\0" in entry.target:
                raise refused(self._what, f"{shown(entry.name)} is a link without a valid target")
            os.symlink(entry.target, name, dir_fd=above)
        elif entry.kind == "hard_link":
            self._link(above, name, entry)
        else:
            fd = os.open(name, _NEW, 0o600, dir_fd=above)
            try:
                for data in content:
                    write_all(fd, data)
                os.fchmod(fd, entry.mode & 0o777 | 0o400)
                os.utime(fd, (entry.mtime, entry.mtime))
            finally:
                os.close(fd)

    def _link(self, above: int, name: bytes, entry: TarEntry) -> None:
        """Make a second name of a file or link of this layer; its target is resolved like every other name."""
        parts = self._parts(entry.target)
        fd = self._open(parts[:-1]) if parts[1:] else os.dup(self._root)
        why = "does not exist in its layer"
        if parts and fd is not None:
            try:
                found = _mode(fd, parts[-1])
                if found is not None and (stat.S_ISREG(found) or stat.S_ISLNK(found)):
                    if not _same_entry(fd, parts[-1], above, name):
                        os.link(parts[-1], name, src_dir_fd=fd, dst_dir_fd=above, follow_symlinks=False)
                    return
                why = why if found is None else "is neither a file nor a link"
            finally:
                os.close(fd)
        raise refused(self._what, f"{shown(entry.name)} is a hard link, and its target {shown(entry.target)} {why}")

    def _remove(self, above: int, name: bytes, mode: int) -> None:
        """Remove an entry of this layer that a later one replaces."""
        if stat.S_ISDIR(mode):
            shutil.rmtree(name, dir_fd=above)
        else:
            os.unlink(name, dir_fd=above)
        self._stale = True

    # what the layer deletes

    def _delete(self, parts: Parts) -> None:
        """Hide a name, or the whole directory, of the layers below. What this layer itself holds stays."""
        above, name = parts[:-1], parts[-1]
        if name == OPAQUE_NAME:
            self._hide_below(self._directory(above))
            self.hides_all = self.hides_all or not above
            return
        if name.startswith(_AUFS):
            return
        hidden = name.removeprefix(WHITEOUT)
        if hidden in (b"", b".", b".."):
            raise refused(self._what, f"{shown(b'/'.join(parts))} hides no name")
        fd = self._directory(above)
        try:
            os.mknod(hidden, stat.S_IFCHR | 0o600, 0, dir_fd=fd)
        except FileExistsError:
            found = _mode(fd, hidden)
            if found is not None and stat.S_ISDIR(found):
                inner = os.open(hidden, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                try:
                    self._hide_below(inner)
                finally:
                    os.close(inner)

    def _hide_below(self, fd: int) -> None:
        with suppress(FileExistsError):
            os.setxattr(fd, OPAQUE, b"y")


def _mode(above: int, name: bytes) -> int | None:
    try:
        return os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _same_entry(fd: int, name: bytes, other_fd: int, other: bytes) -> bool:
    """Return True for a link to itself, which changes nothing."""
    return name == other and os.path.samestat(os.fstat(fd), os.fstat(other_fd))


def _directory_mode(mode: int) -> int:
    return mode & 0o1777 | 0o700
