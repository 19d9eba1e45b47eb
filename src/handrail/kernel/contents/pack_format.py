"""Defines the form of a pack: a file of contents one after another, each behind a header with a checksum.

A pack begins with a mark and a token of random bytes. Every header begins with the token, so that a reader finds the
next whole record behind damaged bytes; a content cannot imitate a header, because its author does not know the token.
Bytes of a pack never change. Only the process that holds the lock of a pack adds to it, and cuts off a torn end.
"""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

MARK = b"handrail pack 1\n"
TOKEN_BYTES = 8
START = len(MARK) + TOKEN_BYTES
"""The offset of the first record."""
_HEADER = struct.Struct("<8sIIQB7x32s")
HEADER_BYTES = _HEADER.size
_SUMMED = TOKEN_BYTES + 4
"""The checksum covers the header behind the token and the checksum itself."""
_CHUNK = 1 << 20
_NO_TOKEN = b"\0" * TOKEN_BYTES


class Record(NamedTuple):
    """Holds where one content lies in a pack."""

    fingerprint: bytes
    at: int
    """The offset of its header."""
    size: int
    """The number of stored bytes, without the header."""
    written: int
    """Seconds since 1970."""
    compressed: bool

    @property
    def end(self) -> int:
        return self.at + HEADER_BYTES + self.size


class DamagedRecord(Exception):  # noqa: N818  a finding, which the reader turns into "lost" or passes over
    """Says that the bytes of a record do not give the content of its fingerprint."""


def new_start() -> bytes:
    """Return the first bytes of a new pack."""
    return MARK + os.urandom(TOKEN_BYTES)


def token_of(fd: int) -> bytes | None:
    """Return the token of an open pack; None if the file is not a pack, or not yet.

    Damage to the start of the pack hides no content: every record has the token, too.
    """
    start = os.pread(fd, START + HEADER_BYTES, 0)
    known = start[len(MARK) : START] if len(start) >= START and start.startswith(MARK) else None
    if known and (len(start) == START or start.startswith(known, START)):
        return known
    other = start[START : START + TOKEN_BYTES]
    first = _parse(start[START:], other, START)
    if known is None or first is None:
        return known if first is None else other
    return known if os.pread(fd, TOKEN_BYTES, first.end) == known else other


def header(token: bytes, fingerprint: bytes, size: int, *, compressed: bool = False, written: float = 0) -> bytes:
    """Return the header of a record."""
    rest = _HEADER.pack(_NO_TOKEN, 0, int(written or time.time()), size, compressed, fingerprint)[_SUMMED:]
    return token + zlib.crc32(rest).to_bytes(4, "little") + rest


def record_at(fd: int, token: bytes, at: int) -> Record | None:
    """Return the record whose header is at an offset; None if there is no whole header."""
    return _parse(os.pread(fd, HEADER_BYTES, at), token, at)


def _parse(data: bytes, token: bytes, at: int) -> Record | None:
    if len(data) != HEADER_BYTES or not data.startswith(token):
        return None
    if zlib.crc32(data[_SUMMED:]) != int.from_bytes(data[TOKEN_BYTES:_SUMMED], "little"):
        return None
    _, _, written, size, form, fingerprint = _HEADER.unpack(data)
    return Record(fingerprint, at, size, written, bool(form))


def stored_bytes(fd: int, record: Record) -> bytes:
    """Return the bytes of a record as they are stored."""
    at, left, parts = record.at + HEADER_BYTES, record.size, list[bytes]()
    while left and (part := os.pread(fd, left, at)):
        parts.append(part)
        at, left = at + len(part), left - len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def content_of(record: Record, stored: bytes) -> bytes:
    """Return the content of a record from its stored bytes. Raises `DamagedRecord`."""
    try:
        data = zlib.decompress(stored) if record.compressed else stored
    except zlib.error as error:
        raise DamagedRecord(str(error)) from None
    if sha256(data).digest() != record.fingerprint:
        raise DamagedRecord("the fingerprint of its content differs")
    return data


def records(fd: int, token: bytes, at: int, size: int) -> Iterator[Record | int]:
    """Yield the whole records from an offset on, and the offset of each damaged place before the next record.

    An incomplete last record is damage, too: a process may just be writing it.
    """
    while at < size:
        record = record_at(fd, token, at)
        if record is None or record.end > size:
            yield at
            found = _next_record(fd, token, at + 1, size)
            if found is None:
                return
            record = found
        yield record
        at = record.end


def whole_records(fd: int) -> Iterator[Record]:
    """Yield all whole records of an open pack."""
    token = token_of(fd)
    if token is not None:
        for found in records(fd, token, START, os.fstat(fd).st_size):
            if isinstance(found, Record):
                yield found


def _next_record(fd: int, token: bytes, at: int, size: int) -> Record | None:
    """Return the first whole record behind a damaged place."""
    while at < size:
        chunk = os.pread(fd, _CHUNK, at)
        found = chunk.find(token)
        while found >= 0:
            record = record_at(fd, token, at + found)
            if record is not None and record.end <= size:
                return record
            found = chunk.find(token, found + 1)
        at += max(1, len(chunk) - TOKEN_BYTES + 1)
    return None
