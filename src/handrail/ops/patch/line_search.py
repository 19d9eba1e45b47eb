"""Finds blocks of lines in a file; no patch can make the time quadratic.

Every line that the patch contains becomes one character, every other line of the file becomes NUL. So the file is a
string, and `str.find`, which is linear and written in C, finds a block of lines. `Strictness` says which lines count
as equal; each level has its own string, made at its first use.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property
from heapq import nlargest
from itertools import repeat
from typing import NamedTuple

from handrail.ops.text.punctuation import fold

_HEADING = re.compile(rb"[^(:{<=;]*")
_FOLD_RESULTS = re.compile(rb"[ '\"-]")
_CALL_COST, _CHECKED_LINES = 64, 8
_CHARACTERS = 0x10FFFF


Key = Callable[[bytes], bytes]


class Strictness(IntEnum):
    """Says which lines count as equal, from strict to loose."""

    EXACT = 0
    ENDS = 1
    """CRs at the end do not count."""
    TRAILING = 2
    """White space at the end does not count."""
    OUTER = 3
    """White space at both ends does not count."""
    FOLDED = 4
    """White space at both ends and typographic punctuation do not count."""
    HEADING = 5
    """Only for a line above a hunk: `class A` equals `class A(Base):`."""


class OutOfEffort(Exception):  # noqa: N818  not an error: the caller knows the hunk and raises a fault
    """The search compared more lines than the limit allows."""


def _folded(line: bytes) -> bytes:
    return fold(line).strip()


def _same(line: bytes) -> bytes:
    return line


def _without_carriage(line: bytes) -> bytes:
    return line.rstrip(b"\r")


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


def same(level: Strictness, one: Sequence[bytes], other: Sequence[bytes]) -> bool:
    """Return whether two blocks of lines are equal at this level."""
    return list(map(_KEYS[level], one)) == list(map(_KEYS[level], other))


class Haystack:
    """Searches the lines of one file for blocks of lines."""

    def __init__(self, data: bytes, lines: list[bytes], wanted: Iterable[bytes], effort: int) -> None:
        """Take all lines that will be searched for (`wanted`) and how many lines may be compared (`effort`)."""
        self._data = data
        self._lines = lines
        self._wanted = list(dict.fromkeys(wanted))
        self._effort = effort
        self._coded: dict[Strictness, _Coded] = {}
        self._reversed: dict[Strictness, str] = {}

    def find(self, block: Sequence[bytes], level: Strictness, low: int = 0, last: int | None = None) -> int:
        """Return the index of the first place from `low` to `last`, else -1."""
        pattern, size = self._pattern(block, level), len(self._lines)
        high = size if last is None else min(last + len(pattern), size)
        return self._search(self._text(level), pattern, low, high) if pattern and low < high else -1

    def find_last(self, block: Sequence[bytes], level: Strictness, low: int, last: int) -> int:
        """Return the index of the last place from `low` to `last`, else -1."""
        pattern = self._pattern(block, level)
        return self._search_back(level, pattern, low, min(last, len(self._lines) - len(pattern))) if pattern else -1

    def all(self, block: Sequence[bytes], level: Strictness, low: int) -> Iterator[int]:
        """Yield the places from `low` on."""
        place = self.find(block, level, low)
        while place >= 0:
            yield place
            place = self.find(block, level, place + 1)

    def matches_at(self, block: Sequence[bytes], level: Strictness, at: int) -> bool:
        """Return whether the block is at the index `at`."""
        pattern = self._pattern(block, level)
        return bool(pattern) and at >= 0 and self._text(level).startswith(pattern, at)

    def _search_back(self, level: Strictness, pattern: str, first: int, last: int) -> int:
        """Return the last place from `first` to `last`. It uses the reversed text: `rfind` can take quadratic time."""
        size = len(self._lines)
        if last < first:
            return -1
        if level not in self._reversed:
            self._reversed[level] = self._text(level)[::-1]
        skip = max(size - last - len(pattern), 0)
        place = self._search(self._reversed[level], pattern[::-1], skip, size - first)
        return -1 if place < 0 else size - place - len(pattern)

    def _search(self, text: str, pattern: str, low: int, high: int) -> int:
        place = text.find(pattern, low, high)
        self._effort -= _CALL_COST + (place if place >= 0 else min(high, len(text))) - low
        if self._effort < 0:
            raise OutOfEffort
        return place

    def _pattern(self, block: Sequence[bytes], level: Strictness) -> str:
        """Return the block as a string; `""` if the file cannot contain the block."""
        if level not in self._coded:
            if not self._possible(block):
                return ""
            self._coded[level] = self._encode(level)
        return self._coded[level].pattern(block)

    def _text(self, level: Strictness) -> str:
        return self._coded[level].text

    def _possible(self, block: Sequence[bytes]) -> bool:
        """Check the bytes of the file before its lines are encoded: text that no level changes must occur in them."""
        for line in nlargest(_CHECKED_LINES, set(block), key=len):
            if max(_FOLD_RESULTS.split(fold(line).strip()), key=len) not in self._data:
                return False
        return True

    def _encode(self, level: Strictness) -> "_Coded":
        if level is Strictness.EXACT:
            return self._by_key(_same, _same, self._wanted)
        if level is Strictness.ENDS:
            plain = b"\r" not in self._data and not any(line.endswith(b"\r") for line in self._wanted)
            exact = self._coded.get(Strictness.EXACT)
            return exact if plain and exact else self._by_key(_KEYS[level], _KEYS[level], set(self._lines))
        if level is Strictness.HEADING:
            return self._by_key(_KEYS[Strictness.FOLDED], _heading, set(self._lines))
        key, (alike, text) = _KEYS[level], self._likenesses
        codes: dict[bytes, str] = {}
        table = {ord(own): codes.setdefault(key(line), own) for line, own in alike.items()}
        return _Coded(codes, key, text.translate(table) if len(codes) < len(alike) else text)

    @cached_property
    def _likenesses(self) -> tuple[dict[bytes, str], str]:
        """A code for each line that equals a wanted line at the loosest level; stricter levels rename the codes."""
        keys = set(map(_folded, self._wanted))
        alike = _numbered(line for line in set(self._lines) if _folded(line) in keys)
        return alike, self._join(alike)

    def _by_key(self, wanted_key: Key, line_key: Key, lines: Iterable[bytes]) -> "_Coded":
        codes = _numbered(map(wanted_key, self._wanted))
        known = ((line, codes.get(line_key(line))) for line in lines)
        return _Coded(codes, wanted_key, self._join({line: code for line, code in known if code}))

    def _join(self, table: dict[bytes, str]) -> str:
        return "".join(map(table.get, self._lines, repeat("\0")))


class _Coded(NamedTuple):
    """Holds the file as a string for one level of strictness."""

    codes: dict[bytes, str]
    key: Key
    text: str

    def pattern(self, block: Sequence[bytes]) -> str:
        found = [self.codes.get(self.key(line), "") for line in block]
        return "".join(found) if all(found) else ""


def _numbered(keys: Iterable[bytes]) -> dict[bytes, str]:
    """Give each distinct key its own character."""
    distinct = dict.fromkeys(keys)
    if len(distinct) >= _CHARACTERS:
        raise OutOfEffort
    return {key: chr(number) for number, key in enumerate(distinct, 1)}
