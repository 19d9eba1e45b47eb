"""Finds the records of a pack by fingerprint, in a sorted file next to the pack.

The index covers the pack up to an offset; readers scan the records behind it. The first byte of a fingerprint selects
one of 256 buckets, each with a checksum, so that a lookup reads one bucket. An index that is missing, damaged or not
of this pack costs time only: the reader scans the pack.
"""

import os
import struct
import zlib
from collections.abc import Iterable
from contextlib import suppress

from handrail.kernel.fs.syscalls import write_all

_MARK = b"handrail index 1"
_HEAD = struct.Struct("<16s8sQQ")
_BUCKET = struct.Struct("<II")
_ENTRY = struct.Struct("<32sQ")
_BUCKETS = 256
_TABLE = _BUCKETS * _BUCKET.size
_START = _HEAD.size + _TABLE + 4
_FINGERPRINT = 32


class DamagedIndex(Exception):  # noqa: N818  the reader scans the pack instead
    """Says that an index cannot be used."""


class PackIndex:
    """Finds offsets in one index file; keeps the buckets that it has read."""

    def __init__(self, path: str, token: bytes, pack_size: int) -> None:
        self._path, self._buckets = path, dict[int, bytes]()
        try:
            head = _read(path, _START, 0)
        except OSError as error:
            raise DamagedIndex(str(error)) from None
        if len(head) != _START or zlib.crc32(head[:-4]) != int.from_bytes(head[-4:], "little"):
            raise DamagedIndex("its checksum differs")
        mark, of_token, self.covered, self.raw = _HEAD.unpack_from(head)
        if mark != _MARK or of_token != token or self.covered > pack_size:
            raise DamagedIndex("it belongs to another pack")
        table = [*_BUCKET.iter_unpack(head[_HEAD.size : -4])]
        self._sums = [checksum for _, checksum in table]
        self._starts = [0]
        for count, _ in table:
            self._starts.append(self._starts[-1] + count)

    def find(self, fingerprint: bytes) -> int | None:
        """Return the offset of a record; None if the index has none. Raises `DamagedIndex`."""
        bucket = self._bucket(fingerprint[0])
        at = bucket.find(fingerprint)
        while at >= 0 and at % _ENTRY.size:
            at = bucket.find(fingerprint, at + 1)
        return None if at < 0 else int.from_bytes(bucket[at + _FINGERPRINT : at + _ENTRY.size], "little")

    def offsets(self) -> dict[bytes, int]:
        """Return all offsets by fingerprint. Raises `DamagedIndex`."""
        return {key: at for number in range(_BUCKETS) for key, at in _ENTRY.iter_unpack(self._bucket(number))}

    def _bucket(self, number: int) -> bytes:
        found = self._buckets.get(number)
        if found is None:
            first, last = self._starts[number], self._starts[number + 1]
            try:
                found = _read(self._path, (last - first) * _ENTRY.size, _START + first * _ENTRY.size)
            except OSError as error:
                raise DamagedIndex(str(error)) from None
            if zlib.crc32(found) != self._sums[number]:
                raise DamagedIndex("a checksum differs")
            self._buckets[number] = found
        return found


def write_index(path: str, token: bytes, covered: int, raw: int, offsets: Iterable[tuple[bytes, int]]) -> None:
    """Replace the index of a pack; the caller holds the lock of the pack. Raises OSError.

    `raw` is the number of bytes that are stored uncompressed.
    """
    buckets: list[list[tuple[bytes, int]]] = [[] for _ in range(_BUCKETS)]
    for each in offsets:
        buckets[each[0][0]].append(each)
    bodies = [b"".join(_ENTRY.pack(*each) for each in sorted(bucket)) for bucket in buckets]
    head = _HEAD.pack(_MARK, token, covered, raw)
    head += b"".join(_BUCKET.pack(len(body) // _ENTRY.size, zlib.crc32(body)) for body in bodies)
    head += zlib.crc32(head).to_bytes(4, "little")
    temp = f"{path}.part"  # no other process writes it: the lock of the pack covers it
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, head + b"".join(bodies))
        finally:
            os.close(fd)
        os.rename(temp, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temp)
        raise


def _read(path: str, size: int, at: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, at)
    finally:
        os.close(fd)
