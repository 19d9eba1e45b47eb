"""Reads the blob of a layer: decompresses it within a limit, and computes both of its digests on the way."""

import hashlib
import os
import zlib
from typing import Any, NamedTuple, Protocol

from handrail.errors import ImageError
from handrail.kernel.oci.refusal import refused

_CHUNK = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SKIPPABLE = tuple(bytes([0x50 + number]) + b"\x2a\x4d\x18" for number in range(16))
"""How the frames of zstd begin that hold no data; `zstd:chunked` layers may begin with one."""
_ZSTD_WINDOW = 27
"""The largest window of zstd: 128 MiB of memory, as `zstd` itself allows."""


class Blob(NamedTuple):
    """Reads a part of an open file: a file of a layout, or a member of an archive."""

    fd: int
    start: int
    size: int

    def read(self, at: int, most: int) -> bytes:
        """Read from a place in the blob on, at most to its end."""
        return os.pread(self.fd, max(0, min(most, self.size - at)), self.start + at)

    def whole(self, most: int, what: str) -> bytes:
        """Read a small blob. Raises ImageError if it is larger than `most` bytes."""
        if self.size > most:
            raise refused(what, f"it has {self.size} bytes; the most are {most}")
        data = b""
        while len(data) < self.size and (more := self.read(len(data), _CHUNK)):
            data += more
        return data


class _Decompressor(Protocol):
    """Describes what the decompressors of zlib and zstd have in common."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, most: int, /) -> bytes: ...


class BlobStream:
    """Yields the bytes of a layer's archive, at most `most` of them. `finish` reads to the end and returns digests."""

    def __init__(self, blob: Blob, what: str, most: int) -> None:
        self._blob, self._what, self._left = blob, what, most
        self._at = 0
        self._compressed, self._plain = hashlib.sha256(), hashlib.sha256()
        self._ready = memoryview(b"")
        self._source = _source(self._next_bytes, blob.read(0, 4), self._what)

    def read(self, most: int) -> bytes:
        if not self._ready:
            self._ready = memoryview(self._source.next())
            self._plain.update(self._ready)
            self._left -= len(self._ready)
            if self._left < 0:
                raise refused(self._what, "it is larger than the limit oci_layer_bytes allows")
        data = bytes(self._ready[:most])
        self._ready = self._ready[most:]
        return data

    def skip(self, count: int) -> None:
        while count and (data := self.read(min(count, _CHUNK))):
            count -= len(data)

    def finish(self) -> tuple[str, str]:
        """Read to the end; return the digest of the blob and the digest of the archive in it."""
        while self.read(_CHUNK):
            pass
        while self._next_bytes():  # what a decompressor leaves behind belongs to the blob, too
            pass
        return f"sha256:{self._compressed.hexdigest()}", f"sha256:{self._plain.hexdigest()}"

    def _next_bytes(self) -> bytes:
        data = self._blob.read(self._at, _CHUNK)
        self._compressed.update(data)
        self._at += len(data)
        return data


class _Unpacked(Protocol):
    def next(self) -> bytes: ...


class _Stored:
    """Reads an archive that is not compressed."""

    def __init__(self, take: Any) -> None:
        self.next = take


class _Members:
    """Reads an archive in one or more compressed members: tools that compress in parallel write many."""

    def __init__(self, take: Any, new: Any, what: str) -> None:
        self._take, self._new, self._what = take, new, what
        self._engine: _Decompressor | None = None
        self._input = b""

    def next(self) -> bytes:
        """Return the next decompressed bytes, at most a chunk; empty at the end."""
        while True:
            holds = self._engine is not None and not getattr(self._engine, "needs_input", True)
            if not self._input and not holds:
                self._input = self._take()
            if self._engine is None:
                if not self._input or not self._input.strip(b"\0"):  # zeros may pad the end
                    self._input = b""
                    return b""
                self._engine = self._new()
            try:
                data = self._engine.decompress(self._input, _CHUNK)
            except Exception as error:  # noqa: BLE001  each library has its own class of errors
                raise refused(self._what, f"its compressed data is not valid: {error}") from None
            ended = not self._input and not holds and not data
            self._input = getattr(self._engine, "unconsumed_tail", b"")
            if self._engine.eof:
                self._input, self._engine = self._engine.unused_data, None
            elif ended:
                raise refused(self._what, "its compressed data ends too early")
            if data:
                return data


def _source(take: Any, magic: bytes, what: str) -> _Unpacked:
    """Return the reader for the compression that the first bytes show; the media type may be wrong or missing."""
    if magic.startswith(_GZIP):
        return _Members(take, lambda: zlib.decompressobj(31), what)
    if magic == _ZSTD or magic in _SKIPPABLE:
        zstd = _zstd(what)
        options = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW}
        return _Members(take, lambda: zstd.ZstdDecompressor(options=options), what)
    return _Stored(take)


def _zstd(what: str) -> Any:
    """Return the module of Python 3.14, or the package with the same interface for older versions."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        try:
            from backports import zstd  # noqa: PLC0415  an extra
        except ImportError:
            reason = f"{what} is compressed with zstd, which this Python cannot read"
            raise ImageError(reason, "Install handrail[zstd], or repack the image with gzip") from None
    return zstd
