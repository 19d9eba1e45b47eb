"""Editing text without touching a byte outside the edited span.

Bytes that are not UTF-8 ride along as surrogates. Matching and new text use LF; the file's own line ends come back
when the spans are put in.
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
    raw: str
    lf: str = ""
    """The text with every line end as LF: what finds and line numbers refer to."""
    _crs: list[int] = field(default_factory=list)
    """Where, in `lf`, each line end stands that lost a CR."""

    @classmethod
    def of(cls, data: bytes) -> "TextBuffer":
        raw = data.decode(errors="surrogateescape")
        if "\r" not in raw or "\r\n" not in raw:
            return cls(raw, raw)
        crs = [match.start() - number for number, match in enumerate(_ENDS.finditer(raw))]
        return cls(raw, raw.replace("\r\n", "\n"), crs)

    @property
    def newline(self) -> str:
        """The line end that new lines take: the one that most lines have."""
        return "\r\n" if self._crs and len(self._crs) * 2 > self.lf.count("\n") else "\n"

    def replace(self, spans: list[tuple[int, int, str]]) -> bytes:
        """Put new text into spans of `lf`, given in order and not overlapping."""
        pieces, at = [], 0
        for start, end, new in spans:
            pieces.append(self.raw[at : self._raw(start)])
            pieces.append(self._with_own_ends(new))
            at = self._raw(end)
        pieces.append(self.raw[at:])
        return "".join(pieces).encode(errors="surrogateescape")

    def _with_own_ends(self, new: str) -> str:
        if "\n" not in self.lf:
            return new  # no line end yet to go by
        return to_lf(new) if self.newline == "\n" else to_lf(new).replace("\n", "\r\n")

    def _raw(self, position: int) -> int:
        return position + bisect_left(self._crs, position)

    def line_of(self, position: int) -> int:
        return self.lf.count("\n", 0, position) + 1


def to_lf(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text


def find_all(text: str, wanted: str, *, overlapping: bool = False) -> list[int]:
    found, at = [], text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + (1 if overlapping else len(wanted)))
    return found


def split_lines(text: str) -> list[str]:
    """Lines without their ends. Only LF and CRLF end a line; text that ends in one has no further line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def numbered(lines: list[str], first: int) -> Iterator[str]:
    """Lines with their numbers in front, six wide, and a tab."""
    whole, skipped = divmod(first, _BLOCK)
    margins = chain(_margins(whole)[skipped:], chain.from_iterable(map(_margins, count(whole + 1))))
    return map(add, margins, lines)


@lru_cache(maxsize=64)
def _margins(block: int) -> list[str]:
    """Made once: to format a number takes longer than all else that is done to its line."""
    return [f"{number:6}\t" for number in range(block * _BLOCK, (block + 1) * _BLOCK)]
