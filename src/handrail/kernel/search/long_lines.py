"""Reads lines that ripgrep cut short again, around their match: by handle, and only the part that is shown."""

import errno
import os

from handrail.kernel.fs.small_files import open_file
from handrail.kernel.search.rg_output import Line
from handrail.ops.search.excerpt import SPARE, excerpt, piece, window_start
from handrail.ops.text.encoding import BOM_8, is_utf_16, to_utf_8

_DECODED = 64 << 20
"""The most bytes of a UTF-16 file that are read to find a position in it."""


class LongLines:
    """Cuts the printed lines of one file to a width; reads a long matching line again around its match."""

    SLACK = 16
    """Bytes beyond the width that ripgrep may print of a line, so that line ends do not count."""

    def __init__(self, dir_fd: int, path: str, width: int, handle: int | None = None) -> None:
        """`handle` is the open file, if the caller has it; otherwise the file is opened when it is needed."""
        self._dir_fd, self._path, self._width, self._handle = dir_fd, path, width, handle

    def shown(self, line: Line) -> tuple[str, bool]:
        """Return the text to show of a line, and whether it was cut."""
        if len(line.text) <= self._width + self.SLACK or not line.is_match:
            return excerpt(line.text, max(line.column, 0), self._width)
        start = window_start(line.column, self._width)
        try:
            window = self._read(line.offset + start, self._width + SPARE)
        except OSError:  # the file was removed after the search, or is too large: show the beginning that rg printed
            return excerpt(line.text, 0, self._width)
        window = window.split(b"\n", 1)[0]
        return piece(window if len(window) > self._width else window.removesuffix(b"\r"), start, self._width), True

    def _read(self, offset: int, count: int) -> bytes:
        fd = open_file(self._dir_fd, self._path) if self._handle is None else os.dup(self._handle)
        try:
            head = os.pread(fd, len(BOM_8), 0)
            if is_utf_16(head):
                size = len(head) + 2 * (offset + count)  # UTF-16 is at most twice as long as UTF-8
                if size > _DECODED:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
                return to_utf_8(os.pread(fd, size, 0))[offset : offset + count]
            return os.pread(fd, count, offset + (len(BOM_8) if head == BOM_8 else 0))
        finally:
            os.close(fd)
