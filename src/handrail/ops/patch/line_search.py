"""Finding lines among lines, in time that no patch can make quadratic.

Every line that the patch asks for becomes one character, every other line of the file becomes NUL: the file
is a string then, and looking for a block of lines is `str.find`, which is linear in C. What counts as the
same line is a rung of a ladder; each has a string of its own, made when it is first needed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from heapq import nlargest
from itertools import repeat

from handrail.ops.text.punctuation import fold

_HEADING = re.compile(rb"[^(:{<=;]*")
_FOLD_RESULTS = re.compile(rb"[ '\"-]")
_CALL_COST, _LOOKS = 64, 8
_CHARACTERS = 0x10FFFF


Key = Callable[[bytes], bytes]


class Strictness(IntEnum):
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


def _same(line: bytes) -> bytes:
    return line


def _without_carriage(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


def _heading(line: bytes) -> bytes:
    match = _HEADING.match(_folded(line))
    return match[0].rstrip() if match else b""


_KEYS: dict[Strictness, Key] = {
    Strictness.EXACT: _same,
    Strictness.ENDS: _without_carriage,
    Strictness.TRAILING: bytes.rstrip,
    Strictness.OUTER: bytes.strip,
    Strictness.FOLDED: _folded,
}


def same(rung: Strictness, one: Sequence[bytes], other: Sequence[bytes]) -> bool:
    return list(map(_KEYS[rung], one)) == list(map(_KEYS[rung], other))


class Haystack:
    def __init__(self, data: bytes, lines: list[bytes], wanted: Iterable[bytes], effort: int) -> None:
        self._data = data
        self._lines = lines
        self._wanted = list(dict.fromkeys(wanted))
        self._effort = effort
        self._coded: dict[Strictness, _Coded] = {}
        self._reversed: dict[Strictness, str] = {}

    def find(self, block: Sequence[bytes], rung: Strictness, low: int = 0) -> int:
        """The first place at or after `low`, else -1."""
        pattern = self._pattern(block, rung)
        return self._search(self._text(rung), pattern, low, len(self._lines)) if pattern else -1

    def stands(self, block: Sequence[bytes], rung: Strictness, at: int) -> bool:
        pattern = self._pattern(block, rung)
        return bool(pattern) and at >= 0 and self._text(rung).startswith(pattern, at)

    def nearest(self, block: Sequence[bytes], rung: Strictness, low: int, at: int) -> list[int]:
        """The place nearest to `at` and not before `low`; two if they are equally near."""
        pattern = self._pattern(block, rung)
        radius, size = 64, len(self._lines)
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

    def _search_back(self, rung: Strictness, pattern: str, first: int, last: int) -> int:
        """The last place from `first` to `last`; in the reversed text, as `rfind` can be made quadratic."""
        size = len(self._lines)
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

    def _pattern(self, block: Sequence[bytes], rung: Strictness) -> str:
        """`""` if the block can't be there."""
        if rung not in self._coded:
            if not self._possible(block):
                return ""
            self._coded[rung] = self._encode(rung)
        return self._coded[rung].pattern(block)

    def _text(self, rung: Strictness) -> str:
        return self._coded[rung].text

    def _possible(self, block: Sequence[bytes]) -> bool:
        """A look at the bytes before the lines are coded: what no rung folds must be there as it is."""
        for line in nlargest(_LOOKS, set(block), key=len):
            if max(_FOLD_RESULTS.split(fold(line).strip()), key=len) not in self._data:
                return False
        return True

    def _encode(self, rung: Strictness) -> "_Coded":
        if rung is Strictness.EXACT:
            return self._by_key(_same, _same, self._wanted)
        if rung is Strictness.ENDS:
            plain = b"\r" not in self._data and not any(line.endswith(b"\r") for line in self._wanted)
            exact = self._coded.get(Strictness.EXACT)
            return exact if plain and exact else self._by_key(_KEYS[rung], _KEYS[rung], set(self._lines))
        if rung is Strictness.HEADING:
            return self._by_key(_KEYS[Strictness.FOLDED], _heading, set(self._lines))
        key, (alike, text) = _KEYS[rung], self._likenesses
        codes: dict[bytes, str] = {}
        table = {ord(own): codes.setdefault(key(line), own) for line, own in alike.items()}
        return _Coded(codes, key, text.translate(table) if len(codes) < len(alike) else text)

    @cached_property
    def _likenesses(self) -> tuple[dict[bytes, str], str]:
        """A code for each line that the coarsest rung likens to a wanted one; finer rungs rename them."""
        keys = set(map(_folded, self._wanted))
        alike = _numbered(line for line in set(self._lines) if _folded(line) in keys)
        return alike, self._join(alike)

    def _by_key(self, wanted_key: Key, line_key: Key, lines: Iterable[bytes]) -> "_Coded":
        codes = _numbered(map(wanted_key, self._wanted))
        known = ((line, codes.get(line_key(line))) for line in lines)
        return _Coded(codes, wanted_key, self._join({line: code for line, code in known if code}))

    def _join(self, table: dict[bytes, str]) -> str:
        return "".join(map(table.get, self._lines, repeat("\0")))


@dataclass(frozen=True, slots=True)
class _Coded:
    codes: dict[bytes, str]
    key: Key
    text: str

    def pattern(self, block: Sequence[bytes]) -> str:
        found = [self.codes.get(self.key(line), "") for line in block]
        return "".join(found) if all(found) else ""


def _numbered(keys: Iterable[bytes]) -> dict[bytes, str]:
    distinct = dict.fromkeys(keys)
    if len(distinct) >= _CHARACTERS:
        raise OutOfEffort
    return {key: chr(number) for number, key in enumerate(distinct, 1)}
