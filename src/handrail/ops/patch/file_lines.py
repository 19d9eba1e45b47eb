"""A file as lines that can be put together again byte for byte."""

from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines without their LF; a CR before it stays with its line."""

    lines: list[bytes]
    closed: bool
    """The last line has a newline too."""
    bom: bytes = b""
    lent: bytes = b""
    """The CR that an unclosed last line would have if it weren't the last, and has here."""
    given: bytes = b""
    """The bytes that the lines were made of."""

    @classmethod
    def of(cls, data: bytes, *, keep_bom: bool = False, even_ends: bool = False) -> "Lines":
        bom = BOM if data.startswith(BOM) and not keep_bom else b""
        lines = data[len(bom) :].split(b"\n")
        closed = not lines[-1]
        lent = b"\r" if even_ends and not closed and len(lines) > 1 and lines[-2].endswith(b"\r") else b""
        if closed:
            lines.pop()
        else:
            lines[-1] += lent
        return cls(lines, closed, bom, lent, data)

    def data(self) -> bytes:
        if not self.lines:
            return b""
        end = b"\n" if self.closed else b""
        data = self.bom + b"\n".join(self.lines) + end
        return data.removesuffix(self.lent) if self.lent and not self.closed else data

    def carriage(self, index: int) -> bytes:
        """CR if a line that is added at `index` should end in one, as its neighbour does."""
        if not self.lines:
            return b""
        return b"\r" if self.lines[max(index - 1, 0)].endswith(b"\r") else b""
