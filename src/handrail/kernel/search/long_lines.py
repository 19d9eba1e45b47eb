"""Lines that ripgrep cut short, read again around their match: by handle, and only as much as is shown."""

import errno
import os

from handrail.kernel.fs.small_files import open_file
from handrail.kernel.search.rg_output import Line
from handrail.ops.search.excerpt import SPARE, excerpt, piece, window_start
from handrail.ops.text.encoding import BOM_8, is_utf_16, to_utf_8

_DECODED = 64 << 20
"""The most of a UTF-16 file that is read to find a place in it."""


class Windows:
    SLACK = 16
    """How much longer than shown a line may be before ripgrep cuts it, so that line ends do not matter."""

    def __init__(self, dir_fd: int, path: str, width: int) -> None:
        self._dir_fd, self._path, self._width = dir_fd, path, width

    def shown(self, line: Line) -> tuple[str, bool]:
        if len(line.text) <= self._width + self.SLACK or not line.is_match:
            return excerpt(line.text, max(line.column, 0), self._width)
        start = window_start(line.column, self._width)
        try:
            window = self._read(line.offset + start, self._width + SPARE)
        except OSError:  # gone since it was searched, or too large: its beginning is all that is known
            return excerpt(line.text, 0, self._width)
        window = window.split(b"\n", 1)[0]
        return piece(window if len(window) > self._width else window.removesuffix(b"\r"), start, self._width), True

    def _read(self, offset: int, count: int) -> bytes:
        fd = open_file(self._dir_fd, self._path)
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
