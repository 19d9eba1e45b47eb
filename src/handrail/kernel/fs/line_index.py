"""Pages of lines from files of any size, in constant memory, and an index so that the second page is found at once."""

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
"""How much of a hole in a sparse file a page shows; it ends there."""
_MARKS_AT_MOST = 1 << 16
_SETTLED_NS = 2_000_000_000
"""A file changed this recently could change again within one tick of its clock, and its version would not tell."""


@record
class _Marks:
    """Where chunks of a file begin, and the number of the line that each begins in."""

    offsets: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    total: int = 0

    def before(self, line: int) -> tuple[int, int]:
        found = max(0, bisect_right(self.lines, line - 1) - 1)
        return self.offsets[found], self.lines[found]


class LineIndex:
    def __init__(self) -> None:
        self._files: OrderedDict[Version, _Marks] = OrderedDict()
        self._lock = threading.Lock()

    def page(
        self, fd: int, found: os.stat_result, first: int, count: int | None, room: int, place: str, seconds: float
    ) -> Page:
        """Lines `first`, `first` + 1, …, at most `room` bytes of them. The line ends of a new file are counted, as many
        as can be in the time; where it is not enough, the page says so.
        """
        version, deadline, complete = Version.of(found), time.monotonic() + seconds, True
        known = self._recall(version)
        at, line = known.before(first) if known else (0, 1)
        last = None if count is None else first + count - 1
        marks, kept, held, shown, cut, ends_open = _Marks(), [], 0, 0, False, False
        for offset, chunk, hole in _chunks(fd, found, at):
            marks.offsets.append(offset)
            marks.lines.append(line)
            ends_open = not chunk.endswith(b"\n")
            ends = chunk.count(b"\n")
            wanted = not cut and line + ends >= first and (last is None or line <= last)
            if wanted:
                piece = _lines_of(chunk, first - line, None if last is None else last - line + 1)
                piece = piece or bytes(min(hole, _HOLE_SHOWN))
                cut = held + len(piece) > room or hole > len(piece)
                kept.append(piece[: room - held])
                held += len(kept[-1])
                shown += ends if len(kept[-1]) == len(chunk) else kept[-1].count(b"\n")
            if known and (cut or (last is not None and line + ends > last)):
                break
            line += ends
            if time.monotonic() > deadline:
                complete = offset + max(hole, len(chunk)) >= found.st_size
                break
        data = kept[0] if len(kept) == 1 else b"".join(kept)
        if data and not data.endswith(b"\n"):
            shown += 1
        marks.total = known.total if known else line - 1 + ends_open
        if not known and complete:
            self._remember(version, marks)
        return Page(data, first, shown, marks.total, found.st_size, cut, complete, version, place)

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
    """Yield what the file held when it was opened: an offset with what was read there, or with the length of a hole."""
    size, sparse = found.st_size, found.st_blocks * 512 < found.st_size
    while at < size:
        if sparse and (hole := _next_data(fd, at, size) - at) > _CHUNK:
            yield at, b"", hole  # no line ends in it
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
        if error.errno != errno.ENXIO:  # nothing but a hole is left
            raise
        return size


def _lines_of(chunk: bytes, skipped: int, stop: int | None) -> bytes:
    """A chunk without its first lines, and without those from `stop` on."""
    start = _after_lines(chunk, skipped)
    return chunk[start:] if stop is None else chunk[start : _after_lines(chunk, stop - max(0, skipped), start)]


def _after_lines(chunk: bytes, count: int, at: int = 0) -> int:
    """The offset behind the next `count` lines of a chunk, or its length where there are fewer."""
    while count > 0:
        at = chunk.find(b"\n", at) + 1
        if not at:
            return len(chunk)
        count -= 1
    return at
