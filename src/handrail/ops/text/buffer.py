"""Edits text without changing a byte outside the edited spans.

Bytes that are not UTF-8 become surrogates and come back unchanged. Matching and new text use LF; `replace` restores
the file's own line ends.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from itertools import chain, count
from operator import add

from handrail.model.record import record

_ENDS = re.compile(r"\r\n")
_BLOCK = 1000


@record
class TextBuffer:
    """Holds the text of a file, as it is and with LF line ends."""

    raw: str
    lf: str = ""
    """The text with every line end as LF; searches and line numbers refer to it."""
    _crs: list[int] = field(default_factory=list)
    """The index in `lf` of each line end that has a CR in `raw`."""

    @classmethod
    def of(cls, data: bytes) -> "TextBuffer":
        """Decode the bytes of a file."""
        raw = data.decode(errors="surrogateescape")
        if "\r" not in raw or "\r\n" not in raw:
            return cls(raw, raw)
        crs = [match.start() - number for number, match in enumerate(_ENDS.finditer(raw))]
        return cls(raw, raw.replace("\r\n", "\n"), crs)

    @property
    def newline(self) -> str:
        """The line end for new lines: the one that most lines have."""
        return "\r\n" if self._crs and len(self._crs) * 2 > self.lf.count("\n") else "\n"

    def replace(self, spans: list[tuple[int, int, str]]) -> bytes:
        """Replace spans of `lf`, given in order and without overlap, and return the new bytes of the file."""
        pieces, at = [], 0
        for start, end, new in spans:
            pieces.append(self.raw[at : self._raw_index(start)])
            pieces.append(self._with_own_ends(new))
            at = self._raw_index(end)
        pieces.append(self.raw[at:])
        return "".join(pieces).encode(errors="surrogateescape")

    def _with_own_ends(self, new: str) -> str:
        if "\n" not in self.lf:
            return new  # the file has no line end to copy
        return to_lf(new) if self.newline == "\n" else to_lf(new).replace("\n", "\r\n")

    def _raw_index(self, position: int) -> int:
        """Return the index in `raw` of a position in `lf`."""
        return position + bisect_left(self._crs, position)

    def line_of(self, position: int) -> int:
        """Return the line number, counted from 1, of a position in `lf`."""
        return self.lf.count("\n", 0, position) + 1


def to_lf(text: str) -> str:
    """Replace every CRLF by LF."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def find_all(text: str, wanted: str, *, overlapping: bool = False) -> list[int]:
    """Return the index of every occurrence of `wanted`."""
    found, at = [], text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + (1 if overlapping else len(wanted)))
    return found


def split_lines(text: str) -> list[str]:
    """Split text into lines without their ends. Only LF and CRLF end a line; no empty line follows the last end."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def numbered(lines: list[str], first: int) -> Iterator[str]:
    """Put the number, six characters wide, and a tab in front of each line."""
    whole, skipped = divmod(first, _BLOCK)
    margins = chain(_margins(whole)[skipped:], chain.from_iterable(map(_margins, count(whole + 1))))
    return map(add, margins, lines)


@lru_cache(maxsize=64)
def _margins(block: int) -> list[str]:
    """Return the margins of one block of line numbers. Cached: formatting a number is the slowest part of a line."""
    return [f"{number:6}\t" for number in range(block * _BLOCK, (block + 1) * _BLOCK)]
