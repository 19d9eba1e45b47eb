"""Finds the blobs of an image: files below an OCI layout, or members of a tar archive. No name leads out of either."""

import errno
import os
import posixpath
import re
import stat
from typing import NamedTuple, Protocol

from handrail.errors import ImageError
from handrail.kernel.fs.resolver import Openat2, PathWalk
from handrail.kernel.oci.blob_stream import Blob
from handrail.kernel.oci.refusal import refused, shown
from handrail.kernel.oci.tar_entries import TarEntries
from handrail.model.limits import Limits

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LINKS = 4
"""The most links between members of an archive: older versions of Docker wrote a repeated layer as a link."""


def checked_digest(value: object, what: str) -> str:
    """Return a digest that may become a part of a path. Raises ImageError for everything else."""
    if not isinstance(value, str) or _DIGEST.fullmatch(value) is None:
        raise refused(what, f"{shown(str(value))} is no digest of the form sha256:…")
    return value


class BlobPlace(Protocol):
    """Opens the files of an image by name."""

    what: str

    def find(self, name: str) -> Blob | None: ...

    def close(self) -> None: ...


class LayoutDirectory:
    """Finds blobs in an OCI layout in a directory: regular files only; it follows no link."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.what = f"the image {shown(path)}"
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ImageError(f"the image {shown(path)} cannot be read: {error.strerror}") from None
        self._files: list[int] = []
        self._resolver = Openat2(self._fd, PathWalk(self._fd, (), limits), limits.resolve_retries)

    def find(self, name: str) -> Blob | None:
        """Open a file of the layout; None if it does not exist."""
        try:
            fd = self._resolver.open(tuple(name.split("/")), _OPEN, links=False)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            why = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise refused(self.what, f"{name} cannot be read: {why}") from None
        self._files.append(fd)
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise refused(self.what, f"{name} is not a regular file")
        return Blob(fd, 0, info.st_size)

    def close(self) -> None:
        for fd in (self._fd, *self._files):
            os.close(fd)
        self._files = []


class _Member(NamedTuple):
    start: int
    size: int
    target: str


class ArchiveFile:
    """Finds blobs in a tar archive, as `docker save` and `podman save` write it; unpacks nothing."""

    def __init__(self, path: str, limits: Limits) -> None:
        self.what = f"the image {shown(path)}"
        try:
            self._fd = os.open(path, _OPEN)
        except OSError as error:
            raise ImageError(f"the image {shown(path)} cannot be read: {error.strerror}") from None
        try:
            info = os.fstat(self._fd)
            if not stat.S_ISREG(info.st_mode):
                raise refused(self.what, "it is not a regular file")
            self._blob = Blob(self._fd, 0, info.st_size)
            self._members = self._listed(limits)
        except BaseException:
            os.close(self._fd)
            raise

    def _listed(self, limits: Limits) -> dict[str, _Member]:
        if self._blob.read(0, 2) == b"\x1f\x8b":
            raise ImageError(f"{self.what} is compressed as a whole", "Decompress it first, with gunzip")
        if self._blob.read(257, 5) != b"ustar":
            raise refused(self.what, "it is not a tar archive")
        walk = _Walk(self._blob)
        most = limits._replace(oci_entries=limits.oci_archive_entries)
        members = {}
        for entry in TarEntries(walk, self.what, most, self._blob.size + 1):
            name = posixpath.normpath(os.fsdecode(entry.name).lstrip("/"))
            if entry.kind in ("file", "symlink", "hard_link"):
                members[name] = _Member(walk.at, entry.size, _target(name, entry.kind, os.fsdecode(entry.target)))
        return members

    def find(self, name: str) -> Blob | None:
        """Return a member as a blob; None if there is none of this name."""
        for _ in range(_LINKS):
            member = self._members.get(name)
            if member is None:
                return None
            if not member.target:
                if member.start + member.size > self._blob.size:
                    raise refused(self.what, f"it ends in the middle of {shown(name)}")
                return self._blob._replace(start=member.start, size=member.size)
            name = member.target
        raise refused(self.what, f"{shown(name)} is a link to a link to a link")

    def close(self) -> None:
        os.close(self._fd)


class _Walk:
    """Reads headers of a tar archive in a file, and skips contents without reading them."""

    def __init__(self, blob: Blob) -> None:
        self._blob, self.at = blob, 0

    def read(self, most: int) -> bytes:
        data = self._blob.read(self.at, most)
        self.at += len(data)
        return data

    def skip(self, count: int) -> None:
        self.at += count


def _target(name: str, kind: str, target: str) -> str:
    """Return the member that a link names; empty for a file. A link is relative to its own directory."""
    if kind == "file":
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target) if kind == "symlink" else target) or "."
