"""Finding lines among lines, in time that no patch can make quadratic.

Every line that the patch asks for becomes one character, every other line of the file becomes NUL: the file
is a string then, and looking for a block of lines is `str.find`, which is linear in C. What counts as the
same line is a rung of a ladder; each has a string of its own, made when it is first needed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import repeat

from handrail.ops.typography import fold

_HEADING = re.compile(rb"[^(:{<=;]*")
_CALL_COST = 64
_CHARACTERS = 0x10FFFF


class Rung(IntEnum):
    EXACT = 0
    ENDS = 1
    TRAILING = 2
    OUTER = 3
    FOLDED = 4
    HEADING = 5
    """For a line above a hunk: `class A` names `class A(Base):`."""


class OutOfEffort(Exception):  # noqa: N818  becomes a fault where the hunk is known
    pass


def _folded(line: bytes) -> bytes:
    return fold(line).strip()


def _without_carriage(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


def _heading(line: bytes) -> bytes:
    match = _HEADING.match(_folded(line))
    return match[0].rstrip() if match else b""


_KEYS: dict[Rung, Callable[[bytes], bytes]] = {
    Rung.ENDS: _without_carriage,
    Rung.TRAILING: bytes.rstrip,
    Rung.OUTER: bytes.strip,
    Rung.FOLDED: _folded,
}


def same(rung: Rung, one: Sequence[bytes], other: Sequence[bytes]) -> bool:
    key = _KEYS.get(rung)
    return list(map(key, one)) == list(map(key, other)) if key else one == other


class Haystack:
    def __init__(self, lines: list[bytes], wanted: Iterable[bytes], effort: int) -> None:
        self.lines = lines
        self._wanted = list(dict.fromkeys(wanted))
        self._effort = effort
        self._rungs: dict[Rung, tuple[dict[bytes, str], str]] = {}
        self._reversed: dict[Rung, str] = {}

    def find(self, block: Sequence[bytes], rung: Rung, low: int = 0) -> int:
        """The first place at or after `low`, else -1."""
        pattern = self._pattern(block, rung)
        return self._search(self._text(rung), pattern, low, len(self.lines)) if pattern else -1

    def stands(self, block: Sequence[bytes], rung: Rung, at: int) -> bool:
        pattern = self._pattern(block, rung)
        return bool(pattern) and at >= 0 and self._text(rung).startswith(pattern, at)

    def nearest(self, block: Sequence[bytes], rung: Rung, low: int, at: int) -> list[int]:
        """The place nearest to `at` and not before `low`; two if they are equally near."""
        if at >= low and self.stands(block, rung, at):
            return [at]
        pattern = self._pattern(block, rung)
        radius, size = 64, len(self.lines)
        while pattern:
            after = self._search(self._text(rung), pattern, max(at, low), at + radius + len(pattern))
            before = self._search_back(rung, pattern, max(low, at - radius), at - 1)
            found = {abs(place - at): place for place in (after, before) if place >= 0}
            if found:
                both = after >= 0 and before >= 0 and len(found) == 1
                return sorted((before, after)) if both else [found[min(found)]]
            if at - radius <= low and at + radius >= size:
                break
            radius *= 8
        return []

    def _search_back(self, rung: Rung, pattern: str, first: int, last: int) -> int:
        """The last place from `first` to `last`; in the reversed text, as `rfind` can be made quadratic."""
        size = len(self.lines)
        if last < first:
            return -1
        if rung not in self._reversed:
            self._reversed[rung] = self._text(rung)[::-1]
        skip = max(size - last - len(pattern), 0)
        place = self._search(self._reversed[rung], pattern[::-1], skip, size - first)
        return -1 if place < 0 else size - place - len(pattern)

    def _search(self, text: str, pattern: str, low: int, high: int) -> int:
        place = text.find(pattern, low, high)
        self._effort -= _CALL_COST + (place if place >= 0 else min(high, len(text))) - low
        if self._effort < 0:
            raise OutOfEffort
        return place

    def _pattern(self, block: Sequence[bytes], rung: Rung) -> str:
        """`""` if a line of the block is not one that was announced."""
        codes, _ = self._coded(rung)
        key = _KEYS[Rung.FOLDED] if rung is Rung.HEADING else _KEYS.get(rung)
        found = [codes.get(key(line) if key else line) for line in block]
        return "" if None in found else "".join(filter(None, found))

    def _text(self, rung: Rung) -> str:
        return self._coded(rung)[1]

    def _coded(self, rung: Rung) -> tuple[dict[bytes, str], str]:
        if rung not in self._rungs:
            self._rungs[rung] = self._encode(rung)
        return self._rungs[rung]

    def _encode(self, rung: Rung) -> tuple[dict[bytes, str], str]:
        if len(self._wanted) >= _CHARACTERS:
            raise OutOfEffort
        numbered = map(chr, range(1, _CHARACTERS))
        if rung is Rung.EXACT:
            codes = table = dict(zip(self._wanted, numbered, strict=False))
        else:
            key = _KEYS[Rung.FOLDED] if rung is Rung.HEADING else _KEYS[rung]
            codes = dict(zip(dict.fromkeys(map(key, self._wanted)), numbered, strict=False))
            key = _heading if rung is Rung.HEADING else key
            known = ((line, codes.get(key(line))) for line in set(self.lines))
            table = {line: code for line, code in known if code}
        return codes, "".join(map(table.get, self.lines, repeat("\0")))
