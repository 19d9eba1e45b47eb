"""Splits a file into lines that can be joined again byte for byte."""

import re
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


class Lines(NamedTuple):
    """Holds lines without their LF; a CR before the LF stays with its line."""

    lines: list[bytes]
    closed: bool
    """True if the last line has a newline too."""
    bom: bytes = b""
    implied_cr: bytes = b""
    """The CRs that `of` adds to a last line without a newline, to make it equal to the others; `data` removes them."""
    given: bytes = b""
    """The bytes from which the lines were made."""

    @classmethod
    def of(cls, data: bytes, *, keep_bom: bool = False, even_ends: bool = False) -> "Lines":
        """Split the bytes of a file. `even_ends`: treat a last line without a newline like the line before it."""
        bom = BOM if data.startswith(BOM) and not keep_bom else b""
        lines = data[len(bom) :].split(b"\n")
        closed = not lines[-1]
        implied_cr = carriages(lines[-2]) if even_ends and not closed and len(lines) > 1 else b""
        if closed:
            lines.pop()
        else:
            lines[-1] += implied_cr
        return cls(lines, closed, bom, implied_cr, data)

    def data(self) -> bytes:
        """Join the lines to the bytes of a file."""
        if not self.lines:
            return b""
        end = b"\n" if self.closed else b""
        data = self.bom + b"\n".join(self.lines) + end
        return data.removesuffix(self.implied_cr) if self.implied_cr and not self.closed else data

    def carriage(self, index: int) -> bytes:
        """Return the CRs with which a line added at `index` should end, as the line before it does."""
        return carriages(self.lines[max(index - 1, 0)]) if self.lines else b""


def carriages(line: bytes) -> bytes:
    """Return the CRs at the end of a line."""
    return line[len(line.rstrip(b"\r")) :]


_LONE_CR = re.compile(rb"\r(?!\r*\n)")
_MARK = b"\r\r"
"""The text before the LF of a line that really ends in a lone CR."""


def has_lone_cr(data: bytes) -> bool:
    """Return whether a CR without an LF ends lines of a file; a file with CR CR LF is left as it is."""
    return bool(_LONE_CR.search(data)) and _MARK + b"\n" not in data


def with_marked_cr(data: bytes) -> bytes:
    """Return the bytes with an LF after each lone CR, and a mark before it."""
    return _LONE_CR.sub(_MARK + b"\n", data)


def without_marked_cr(data: bytes) -> bytes:
    """Return the bytes from which `with_marked_cr` was made."""
    return data.replace(_MARK + b"\n", b"\r")
