"""Finds the place in a file that is most similar to a text that was not found, for the error of a failed edit.

The effort is bounded for every file: a few probes, each a linear search, then a comparison of a few places.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from handrail.model.limits import Limits
from handrail.ops.text.punctuation import fold

_LINES, _WORDS, _HITS, _PLACES = 40, 16, 20, 6
_LINE_BYTES, _PROBE_BYTES, _COMPARED_BYTES = 2000, 200, 120
_ALIKE = 0.45
_WORD = re.compile(rb"[\w\x80-\xff]{3,}")
_NUMBERED = re.compile(rb"^\s*L?\d+(?:\t|: ?|\| ?|\xe2\x86\x92)\s*")


class Nearest(NamedTuple):
    """Holds the first line that differs at the most similar place."""

    line: int
    """The number of the line, counted from 1."""
    wanted: bytes
    found: bytes
    difference: str
    """One of: line_end, trailing_space, tabs, indentation, spacing, typography, case, escaping, numbered
    (the wanted line begins with a line number), several (of these), line_breaks (the wanted text has `\\n`),
    missing (the file ends before), text; empty if no line differs."""


def nearest(data: bytes, wanted: bytes, *, partial: bool = False, limits: Limits | None = None) -> Nearest | None:
    """Find the most similar place; None if no place is similar. `partial`: the text may start and end inside a line."""
    lines = [_cut(line) for line in wanted.removesuffix(b"\n").split(b"\n")[:_LINES]]
    if b"\\n" in wanted and (start := data.find(wanted.replace(b"\\n", b"\n"))) >= 0:
        number, begin = data.count(b"\n", 0, start) + 1, data.rfind(b"\n", 0, start) + 1
        return Nearest(number, lines[0], _window(data, begin, 1)[0], "line_breaks")
    best, best_score = -1, _ALIKE
    for start in _likely_starts(data.lower(), lines, (limits or Limits()).nearest_bytes):
        score = _likeness(lines, _window(data, start, len(lines)), partial=partial)
        if score > best_score:
            best, best_score = start, score
    if best < 0:
        return None
    return _first_difference(data, lines, best, partial=partial)


def _first_difference(data: bytes, lines: list[bytes], start: int, *, partial: bool) -> Nearest:
    """Return the first line that differs if the text begins at the offset `start`."""
    number = data.count(b"\n", 0, start) + 1
    window = _window(data, start, len(lines))
    for index, want in enumerate(lines):
        if index == len(window):
            return Nearest(number + index, want, b"", "missing")
        found = window[index]
        at_start = partial and index == 0 and found.endswith(want)
        at_end = partial and index == len(lines) - 1 and found.startswith(want)
        if want != found and not at_start and not at_end:
            return Nearest(number + index, want, found, difference(want, found, partial=partial))
    return Nearest(number, lines[0], window[0], "")


def _likely_starts(lowered: bytes, lines: list[bytes], budget: int) -> list[int]:
    """Return the offsets of the lines where the text most likely should start, the most likely first."""
    votes: Counter[int] = Counter()
    for index, probe in _probes(lines):
        for offset in _hits(lowered, probe):
            votes[_lines_up(lowered, offset, index)] += len(probe)
        budget -= len(lowered)
        if budget < 0:
            break
    return [start for start, _ in votes.most_common(_PLACES)]


def _probes(lines: list[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield texts to search for, each with its line index: whole lines, then words, then parts of words, long first."""
    numbered = [(index, line.strip().lower()[:_PROBE_BYTES]) for index, line in enumerate(lines)]
    yield from sorted((pair for pair in numbered if len(pair[1]) > 2), key=lambda pair: -len(pair[1]))
    words = {word: index for index, line in reversed(numbered) for word in _WORD.findall(line)}
    longest = sorted(words, key=lambda word: (-len(word), word))[:_WORDS]
    yield from ((words[word], word) for word in longest)
    yield from ((words[word], word[: len(word) * 2 // 3]) for word in longest if len(word) > 4)


def _hits(text: bytes, probe: bytes) -> Iterator[int]:
    """Yield the offsets of the first occurrences."""
    offset = text.find(probe)
    for _ in range(_HITS):
        if offset < 0:
            return
        yield offset
        offset = text.find(probe, offset + len(probe))


def _lines_up(text: bytes, offset: int, count: int) -> int:
    """Return the start of the line that is `count` lines above the line at `offset`."""
    for _ in range(count + 1):
        offset = text.rfind(b"\n", 0, offset)
        if offset < 0:
            return 0
    return offset + 1


def _window(data: bytes, start: int, count: int) -> list[bytes]:
    """Return up to `count` lines from the offset `start`."""
    if start >= len(data):
        return []
    end = start
    for _ in range(count):
        end = data.find(b"\n", end) + 1
        if not end:
            end = len(data) + (not data.endswith(b"\n"))
            break
    return [_cut(line) for line in data[start : end - 1].split(b"\n")]


def _cut(line: bytes) -> bytes:
    """Return the part of a line that is compared; the cut is never inside a character."""
    end = _LINE_BYTES
    while len(line) > end and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]


def _likeness(lines: list[bytes], window: list[bytes], *, partial: bool) -> float:
    """Return how similar the lines are, from 0 to 1."""
    comparisons, total = 3, 0.0
    for want, found in zip(lines, window, strict=False):
        if difference(want, found, partial=partial) != "text":
            total += 1
        elif comparisons:
            comparisons -= 1
            from difflib import SequenceMatcher  # noqa: PLC0415  only if a text was not found

            pair = want.strip()[:_COMPARED_BYTES], found.strip()[:_COMPARED_BYTES]
            total += SequenceMatcher(None, *pair, autojunk=False).ratio()
    return total / len(lines)


def _squeezed(text: bytes) -> bytes:
    return b"".join(text.split())


def _unescaped(text: bytes) -> bytes:
    return re.sub(rb"\\(.)", rb"\1", text)


_INSIDE: dict[str, Callable[[bytes], bytes]] = {
    "spacing": _squeezed,
    "typography": fold,
    "case": bytes.lower,
    "escaping": _unescaped,
    "several": lambda text: _squeezed(_unescaped(fold(text))).lower(),
}


def difference(wanted: bytes, found: bytes, *, partial: bool = False) -> str:
    """Name the difference between a wanted line and a found line; `""` if they are equal.

    `partial`: the wanted line may be a part of the found line.
    """
    if wanted == found:
        return ""
    if wanted.removesuffix(b"\r") == found.removesuffix(b"\r"):
        return "line_end"
    if wanted.rstrip() == found.rstrip():
        return "trailing_space"
    if wanted.strip() == found.strip():
        tabs = [b"\t" in line[: len(line) - len(line.lstrip())] for line in (wanted, found)]
        return "tabs" if tabs[0] != tabs[1] else "indentation"
    numbered = _NUMBERED.match(wanted)
    for name, key in _INSIDE.items():
        want, there = key(wanted.strip()), key(found.strip())
        if want == there or (partial and want and want in there):
            return name
    return "numbered" if numbered and wanted[numbered.end() :].strip() == found.strip() else "text"
