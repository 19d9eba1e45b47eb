"""Recognises images and PDF by their first bytes and reads the dimensions of an image from its header.

The bytes may be hostile: every read is bounded by the data, and the search in a JPEG by a number of segments.
"""

from typing import NamedTuple

_MOST_SEGMENTS = 10_000
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_PNG, _PDF = b"\x89PNG\r\n\x1a\n", b"%PDF-"


class MediaHeader(NamedTuple):
    """Holds the media type of some bytes and, for an image, its size in pixels; 0 if the header does not say it."""

    mime: str
    width: int = 0
    height: int = 0

    @property
    def is_image(self) -> bool:
        return self.mime != "application/pdf"

    @property
    def is_whole(self) -> bool:
        """True unless it is an image without dimensions: its header is cut or wrong."""
        return not self.is_image or min(self.width, self.height) > 0


def media_header(data: bytes) -> MediaHeader | None:
    """Return what the bytes are: PNG, JPEG, GIF, WebP or PDF; None for everything else."""
    if data.startswith(_PNG):
        return MediaHeader("image/png", *_png(data))
    if data.startswith(b"\xff\xd8\xff"):
        return MediaHeader("image/jpeg", *_jpeg(data))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return MediaHeader("image/gif", _little(data, 6, 2), _little(data, 8, 2))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return MediaHeader("image/webp", *_webp(data))
    return MediaHeader("application/pdf") if data.startswith(_PDF) else None


def _little(data: bytes, at: int, count: int) -> int:
    """Return a number at a place; 0 if the data ends before it."""
    part = data[at : at + count]
    return int.from_bytes(part, "little") if len(part) == count else 0


def _big(data: bytes, at: int, count: int) -> int:
    part = data[at : at + count]
    return int.from_bytes(part, "big") if len(part) == count else 0


def _png(data: bytes) -> tuple[int, int]:
    return (_big(data, 16, 4), _big(data, 20, 4)) if data[12:16] == b"IHDR" else (0, 0)


def _jpeg(data: bytes) -> tuple[int, int]:
    """Return the dimensions from the first frame header, which may follow many other segments."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if data[at : at + 1] != b"\xff" or at + 1 >= len(data):
            break
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _JPEG_ALONE:
            at += 2
        elif marker in _JPEG_FRAMES:
            return _big(data, at + 7, 2), _big(data, at + 5, 2)
        else:
            at += 2 + max(2, _big(data, at + 2, 2))
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    if kind == b"VP8L" and data[20:21] == b"\x2f" and len(data) >= 25:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X" and len(data) >= 30:
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    return 0, 0


def described(mime: str, size: int, width: int = 0, height: int = 0) -> str:
    """Return what a file is, in words: its type, its dimensions if they are known, and its size."""
    pixels = f"{width}x{height} pixels, " if width and height else ""
    return f"{mime}, {pixels}{size} bytes"
