"""Splits a file into lines that can be joined again byte for byte."""

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"


class Lines(NamedTuple):
    """Holds lines without their LF; a CR before the LF stays with its line."""

    lines: list[bytes]
    closed: bool
    """True if the last line has a newline too."""
    bom: bytes = b""
    implied_cr: bytes = b""
    """The CR that `of` adds to a last line without a newline, to make it equal to the others; `data` removes it."""
    given: bytes = b""
    """The bytes from which the lines were made."""

    @classmethod
    def of(cls, data: bytes, *, keep_bom: bool = False, even_ends: bool = False) -> "Lines":
        """Split the bytes of a file. `even_ends`: treat a last line without a newline like the line before it."""
        bom = BOM if data.startswith(BOM) and not keep_bom else b""
        lines = data[len(bom) :].split(b"\n")
        closed = not lines[-1]
        implied_cr = b"\r" if even_ends and not closed and len(lines) > 1 and lines[-2].endswith(b"\r") else b""
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
        """Return CR if a line added at `index` should end in CR, as the line before it does."""
        if not self.lines:
            return b""
        return b"\r" if self.lines[max(index - 1, 0)].endswith(b"\r") else b""
