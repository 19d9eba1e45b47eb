"""Reads pages of lines from files of any size in constant memory, and indexes large files to find later pages fast."""

import errno
import os
import threading
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field

from handrail.model.files import Page, Version
from handrail.model.record import record

_CHUNK = 1 << 17
_INDEXED_BYTES = 4 << 20
_INDEXED_FILES = 64
_HOLE_SHOWN = 1 << 20
"""The most bytes of a hole in a sparse file that a page shows; the page ends there."""
_MARKS_AT_MOST = 1 << 16
_SETTLED_NS = 2_000_000_000
"""A file changed more recently than this is not indexed: a change within the same clock tick keeps its version."""


@record
class _Marks:
    """Holds the offsets at which the chunks of a file begin, and the number of the line at each offset."""

    offsets: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    total: int = 0

    def add(self, offset: int, line: int) -> None:
        self.offsets.append(offset)
        self.lines.append(line)

    def before(self, line: int) -> tuple[int, int]:
        """Return the offset and the line number of the last mark before a line."""
        found = max(0, bisect_right(self.lines, line - 1) - 1)
        return self.offsets[found], self.lines[found]


class _PageLines:
    """Collects the bytes of one page from the chunks of a file."""

    def __init__(self, first: int, count: int | None, room: int) -> None:
        self._first, self._last, self._room = first, None if count is None else first + count - 1, room
        self._pieces: list[bytes] = []
        self._line_ends = 0
        self.cut = False
        """True if the page ends early, because it has no more room or because of a hole."""

    def add(self, line: int, chunk: bytes, ends: int, hole: int) -> None:
        """Add the lines of the page that lie in a chunk. The chunk begins in `line` and has `ends` line ends."""
        if self.cut or line + ends < self._first or self._is_after_page(line):
            return
        stop = None if self._last is None else self._last - line + 1
        piece = _lines_of(chunk, self._first - line, stop) or bytes(min(hole, _HOLE_SHOWN))
        self.cut = len(piece) > self._room or hole > len(piece)
        piece = piece[: self._room]
        self._room -= len(piece)
        self._pieces.append(piece)
        self._line_ends += ends if len(piece) == len(chunk) else piece.count(b"\n")

    def is_finished(self, next_line: int) -> bool:
        return self.cut or self._is_after_page(next_line)

    def data(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def count(self, data: bytes) -> int:
        """Return the number of lines in the page; a last line without a line end counts."""
        return self._line_ends + bool(data and not data.endswith(b"\n"))

    def _is_after_page(self, line: int) -> bool:
        return self._last is not None and line > self._last


class LineIndex:
    """Reads pages, and remembers the marks of the large files that it has read last."""

    def __init__(self) -> None:
        self._files: OrderedDict[Version, _Marks] = OrderedDict()
        self._lock = threading.Lock()

    def page(
        self, fd: int, found: os.stat_result, first: int, count: int | None, room: int, place: str, seconds: float
    ) -> Page:
        """Return lines `first`, `first` + 1, …, at most `room` bytes of them.

        Counts the lines of a file that is not indexed, for at most `seconds`. `Page.complete` says whether the time
        was enough.
        """
        version, deadline, complete = Version.of(found), time.monotonic() + seconds, True
        known = self._recall(version)
        at, line = known.before(first) if known else (0, 1)
        page, marks, ends_open = _PageLines(first, count, room), _Marks(), False
        for offset, chunk, hole in _chunks(fd, found, at):
            marks.add(offset, line)
            ends, ends_open = chunk.count(b"\n"), not chunk.endswith(b"\n")
            page.add(line, chunk, ends, hole)
            line += ends
            if known and page.is_finished(line):
                break
            if time.monotonic() > deadline:
                complete = offset + max(hole, len(chunk)) >= found.st_size
                break
        marks.total = known.total if known else line - 1 + ends_open
        if not known and complete:
            self._remember(version, marks)
        data = page.data()
        return Page(data, first, page.count(data), marks.total, found.st_size, page.cut, complete, version, place)

    def _recall(self, version: Version) -> _Marks | None:
        if version.size < _INDEXED_BYTES:
            return None
        with self._lock:
            marks = self._files.get(version)
            if marks is not None:
                self._files.move_to_end(version)
            return marks

    def _remember(self, version: Version, marks: _Marks) -> None:
        if version.size < _INDEXED_BYTES or len(marks.offsets) > _MARKS_AT_MOST:
            return
        if time.time_ns() - max(version.mtime_ns, version.ctime_ns) < _SETTLED_NS:
            return
        with self._lock:
            self._files[version] = marks
            if len(self._files) > _INDEXED_FILES:
                self._files.popitem(last=False)


def _chunks(fd: int, found: os.stat_result, at: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield the content up to the size at opening: each offset with its bytes, or with b"" and the length of a hole."""
    size, sparse = found.st_size, found.st_blocks * 512 < found.st_size
    while at < size:
        if sparse and (hole := _next_data(fd, at, size) - at) > _CHUNK:
            yield at, b"", hole  # a hole contains no line end
            at += hole
        elif chunk := os.pread(fd, min(_CHUNK, size - at), at):
            yield at, chunk, 0
            at += len(chunk)
        else:
            return


def _next_data(fd: int, at: int, size: int) -> int:
    try:
        return os.lseek(fd, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:  # only a hole is left
            raise
        return size


def _lines_of(chunk: bytes, skipped: int, stop: int | None) -> bytes:
    """Return a chunk without its first `skipped` lines, and without the lines from `stop` on."""
    start = _after_lines(chunk, skipped)
    return chunk[start:] if stop is None else chunk[start : _after_lines(chunk, stop - max(0, skipped), start)]


def _after_lines(chunk: bytes, count: int, at: int = 0) -> int:
    """Return the offset after the next `count` lines of a chunk, or its length if it has fewer lines."""
    while count > 0:
        at = chunk.find(b"\n", at) + 1
        if not at:
            return len(chunk)
        count -= 1
    return at
