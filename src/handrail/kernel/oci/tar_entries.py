"""Reads the entries of a tar archive as a stream: ustar, GNU long names, and pax headers, each within a limit.

The standard library reads a header of any size into memory, and follows the file types of its platform. This reader
knows the five kinds of entries that a layer needs; it skips or refuses all others.
"""

import struct
from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol

from handrail.errors import ImageError
from handrail.kernel.oci.refusal import refused, shown
from handrail.model.limits import Limits

BLOCK = 512
_ZEROS = bytes(BLOCK)
_CHUNK = 1 << 20
_LATEST = 2**33
"""The latest time that is kept, in seconds: the year 2242."""
_FIELDS = struct.Struct("100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x")

Kind = Literal["file", "directory", "symlink", "hard_link", "other"]
_KINDS: dict[bytes, Kind] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hard_link",
    b"2": "symlink",
    b"5": "directory",
}
_EXTENSIONS = {b"x": "pax", b"g": "global", b"L": "name", b"K": "target"}


class ByteStream(Protocol):
    """Reads forwards. The end is an empty answer."""

    def read(self, most: int) -> bytes: ...

    def skip(self, count: int) -> None: ...


class TarEntry(NamedTuple):
    """Describes one entry of an archive. Names are as the archive spells them."""

    name: bytes
    kind: Kind
    size: int
    mode: int
    mtime: float
    target: bytes


class TarEntries:
    """Yields the entries of a stream. The caller may read the content of an entry before it asks for the next."""

    def __init__(self, stream: ByteStream, what: str, limits: Limits, most_bytes: int) -> None:
        self._stream, self._what, self._limits = stream, what, limits
        self._left = self._padding = 0
        self._room = most_bytes
        self._count = 0

    def __iter__(self) -> Iterator[TarEntry]:
        while (entry := self._next()) is not None:
            yield entry

    def content(self) -> Iterator[bytes]:
        """Yield the content of the entry that was yielded last."""
        while self._left:
            data = self._stream.read(min(_CHUNK, self._left))
            if not data:
                raise self._broken("it ends in the middle of a file")
            self._left -= len(data)
            yield data

    def _next(self) -> TarEntry | None:
        """Read headers up to the one of the next entry; None at the end of the archive."""
        more: dict[str, bytes] = {}
        while True:
            self._stream.skip(self._left + self._padding)
            self._left = self._padding = 0
            block = self._exactly(BLOCK, at_end=True)
            if block is None or block == _ZEROS:
                if more or (block is not None and self._exactly(BLOCK, at_end=True) not in (None, _ZEROS)):
                    raise self._broken("it has a header that does not end")
                return None
            self._count += 1
            if self._count > self._limits.oci_entries:
                raise self._broken(f"it has more than {self._limits.oci_entries} entries")
            fields = self._checked(block)
            extension = _EXTENSIONS.get(fields[7])
            if extension is None:
                return self._entry(fields, more)
            more |= self._extension(extension, self._number(fields[4]))

    def _exactly(self, count: int, *, at_end: bool = False) -> bytes | None:
        """Read this many bytes; None if the stream ends before the first and `at_end` allows that."""
        data = self._stream.read(count)
        while 0 < len(data) < count:
            more = self._stream.read(count - len(data))
            if not more:
                break
            data += more
        if len(data) == count:
            return data
        if at_end and not data:
            return None
        raise self._broken("it ends in the middle of a header")

    def _checked(self, block: bytes) -> tuple[bytes, ...]:
        fields = _FIELDS.unpack(block)
        total = sum(block) - sum(block[148:156]) + 8 * 0x20
        if self._number(fields[6]) != total:
            raise self._broken("a header has a wrong checksum")
        return fields

    def _number(self, field: bytes) -> int:
        """Read a number in octal digits, or in the binary form of GNU tar."""
        if field[0] & 0x80:
            return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big") if field[0] != 0xFF else -1
        digits = field.split(b"\0", 1)[0].strip()
        if not digits:
            return 0
        if not digits.isdigit() or b"8" in digits or b"9" in digits:
            raise self._broken("a header has a number that is none")
        return int(digits, 8)

    def _extension(self, kind: str, size: int) -> dict[str, bytes]:
        """Read a header that describes the next entry; a global one is skipped."""
        if not 0 <= size <= self._limits.oci_header_bytes:
            raise self._broken(f"a header has {size} bytes; the most are {self._limits.oci_header_bytes}")
        self._take(size)
        data = self._exactly(size) if size else b""
        self._left = 0
        assert data is not None  # noqa: S101  only the end of an archive gives None
        if kind == "pax":
            return self._pax(data)
        return {} if kind == "global" else {kind: data.split(b"\0", 1)[0]}

    def _pax(self, data: bytes) -> dict[str, bytes]:
        """Read the records `LENGTH KEY=VALUE` of a pax header; keep those that a layer needs."""
        found: dict[str, bytes] = {}
        at = 0
        while at < len(data):
            digits, _, _ = data[at : at + 20].partition(b" ")
            length = int(digits) if digits.isdigit() else 0
            record = data[at : at + length]
            key, equals, value = record[len(digits) + 1 :].partition(b"=")
            if not equals or len(record) < length or not record.endswith(b"\n"):
                raise self._broken("a pax header is not valid")
            if key.startswith(b"GNU.sparse."):
                raise self._broken("it holds a sparse file; write it without --sparse")
            name = {b"path": "name", b"linkpath": "target", b"size": "size", b"mtime": "mtime"}.get(key)
            if name:
                found[name] = value[:-1]
            at += length
        return found

    def _entry(self, fields: tuple[bytes, ...], more: dict[str, bytes]) -> TarEntry:
        if fields[7] == b"S":
            raise self._broken("it holds a sparse file; write it without --sparse")
        name = more.get("name") or _joined(fields)
        kind = _KINDS.get(fields[7], "other")
        if kind == "file" and name.endswith(b"/"):
            kind = "directory"  # the oldest form of tar
        size = self._decimal(more["size"]) if "size" in more else self._number(fields[4])
        if kind in ("directory", "symlink", "hard_link"):
            size = 0  # a size in their headers has no content behind it
        self._take(size, name)
        target = more["target"] if "target" in more else fields[8].split(b"\0", 1)[0]
        return TarEntry(name, kind, size, self._number(fields[1]), self._time(fields[5], more), target)

    def _take(self, size: int, name: bytes = b"") -> None:
        """Count the bytes that follow a header, and refuse at once what will not fit."""
        self._room -= max(0, size) + BLOCK
        if size < 0 or self._room < 0:
            about = f"{shown(name)} has {size} bytes, and " if name else ""
            raise self._broken(f"{about}the layer is larger than the limit oci_layer_bytes allows")
        self._left, self._padding = size, -size % BLOCK

    def _decimal(self, digits: bytes) -> int:
        if not digits.isdigit() or len(digits) > 20:
            raise self._broken("a pax header has a size that is no number")
        return int(digits)

    def _time(self, field: bytes, more: dict[str, bytes]) -> float:
        try:
            seconds = float(more["mtime"][:40]) if "mtime" in more else float(self._number(field))
        except ValueError:
            return 0.0
        return min(max(seconds, 0.0), _LATEST) if seconds == seconds else 0.0  # noqa: PLR0124  not a number

    def _broken(self, why: str) -> ImageError:
        return refused(self._what, why)


def _joined(fields: tuple[bytes, ...]) -> bytes:
    """Return the name of an entry from the two fields of ustar; only the POSIX form has the second one."""
    name, prefix = fields[0].split(b"\0", 1)[0], fields[15].split(b"\0", 1)[0]
    return prefix + b"/" + name if fields[9] == b"ustar\0" and prefix else name
