"""Writes the changes of an overlay as the archive of a layer: compressed with gzip, and with both digests."""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

from handrail.kernel.layers.upper_entries import is_opaque, is_whiteout
from handrail.kernel.oci.layer_tree import OPAQUE_NAME, WHITEOUT
from handrail.kernel.oci.refusal import refused, shown
from handrail.kernel.sandbox.view.image_root import OWN_FILES
from handrail.model.limits import Limits

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OWN = tuple(path.encode() for path in OWN_FILES)
_LEVEL = 1

Found = tuple[bytes, os.stat_result, int]


class WrittenLayer(NamedTuple):
    """Holds the digests and the size of an archive."""

    digest: str
    diff_id: str
    size: int


class _DigestWriter:
    """Passes bytes on, and computes their digest."""

    def __init__(self, to: IO[bytes]) -> None:
        self._to, self._hash, self.size = to, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._to.write(data)

    def flush(self) -> None:
        self._to.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def write_archive(top: int, to: IO[bytes], limits: Limits) -> WrittenLayer:
    """Write the tree below an open directory. Raises ImageError for a tree that Handrail would refuse in a layer."""
    stored = _DigestWriter(to)
    with gzip.GzipFile("", "wb", _LEVEL, cast("IO[bytes]", stored), mtime=0) as packed:
        plain = _DigestWriter(cast("IO[bytes]", packed))
        with tarfile.open(fileobj=cast("IO[bytes]", plain), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            _add_all(archive, top, limits)
    return WrittenLayer(stored.digest, plain.digest, stored.size)


def _add_all(archive: tarfile.TarFile, top: int, limits: Limits) -> None:
    first: dict[tuple[int, int], bytes] = {}
    for count, (path, found, above) in enumerate(_entries(top), 1):
        name = os.path.basename(path)
        if why := _refusal(path, count, limits):
            raise refused("the change", why)
        if path in _OWN:
            continue
        if is_whiteout(found):
            archive.addfile(_entry(os.path.join(os.path.dirname(path), WHITEOUT + name), found, tarfile.REGTYPE))
        elif stat.S_ISDIR(found.st_mode):
            archive.addfile(_entry(path, found, tarfile.DIRTYPE))
            _add_opaque(archive, path, found, above)
        elif stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=above)
            archive.addfile(_entry(path, found, tarfile.SYMTYPE, target))
        elif stat.S_ISREG(found.st_mode):
            earlier = first.setdefault((found.st_dev, found.st_ino), path)
            if earlier != path:
                archive.addfile(_entry(path, found, tarfile.LNKTYPE, earlier))
                continue
            _add_file(archive, path, above)


def _refusal(path: bytes, count: int, limits: Limits) -> str:
    """Say why no layer can hold an entry with this path and number; empty if one can."""
    if os.path.basename(path).startswith(WHITEOUT):
        return f"the name {shown(path)} would delete a file of the image"
    if path.count(b"/") >= limits.oci_depth:
        return f"the name {shown(path)} lies more than {limits.oci_depth} directories deep"
    return f"it has more than {limits.oci_entries} entries" if count > limits.oci_entries else ""


def _add_opaque(archive: tarfile.TarFile, path: bytes, found: os.stat_result, above: int) -> None:
    fd = os.open(os.path.basename(path), _DIRECTORY, dir_fd=above)
    try:
        if is_opaque(fd):
            archive.addfile(_entry(os.path.join(path, OPAQUE_NAME), found, tarfile.REGTYPE))
    finally:
        os.close(fd)


def _add_file(archive: tarfile.TarFile, path: bytes, above: int) -> None:
    fd = os.open(os.path.basename(path), _FILE, dir_fd=above)
    with open(fd, "rb") as content:
        found = os.fstat(fd)
        entry = _entry(path, found, tarfile.REGTYPE)
        entry.size = found.st_size
        archive.addfile(entry, content)


def _entry(path: bytes, found: os.stat_result, kind: bytes, target: bytes = b"") -> tarfile.TarInfo:
    """Return the header of an entry. The owner is root, and no set-user-id bit is kept."""
    made = tarfile.TarInfo(os.fsdecode(path))
    made.type, made.linkname = kind, os.fsdecode(target)
    made.mode, made.mtime = found.st_mode & 0o1777, int(found.st_mtime)
    return made


def _entries(top: int) -> Iterator[Found]:
    """Yield the path and the stat result of every entry below a directory, with a handle of its own directory."""
    stack = [(b"", os.dup(top), iter(sorted(map(os.fsencode, os.listdir(top)))))]
    try:
        while stack:
            stem, fd, names = stack[-1]
            name = next(names, None)
            if name is None:
                os.close(stack.pop()[1])
                continue
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            yield stem + name, found, fd
            if stat.S_ISDIR(found.st_mode):
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
                stack.append((stem + name + b"/", inner, iter(sorted(map(os.fsencode, os.listdir(inner))))))
    finally:
        for _, fd, _ in stack:
            os.close(fd)
