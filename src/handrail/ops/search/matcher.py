"""Finds the lines of a text that a pattern matches, for the built-in engine.

It uses the fastest of three ways. A plain text is found directly. A pattern that requires certain texts is tried only
on lines that contain one of them. Any other pattern runs over the whole text; a match that crosses lines is tried
again on its first line.
"""

import re
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from handrail.model.faults import InvalidPattern
from handrail.ops.search.literals import for_builtin, required_texts
from handrail.ops.search.regex import Pattern

if TYPE_CHECKING:
    import regex

_Text = TypeVar("_Text", bytes, str)
_PREFIX = "(?-f:"  # case folding maps one letter to one letter, as in ripgrep


class HitLine(NamedTuple):
    """Describes one matching line; all positions are in bytes."""

    number: int
    start: int
    end: int
    column: int
    """The position of the first match in the line."""


class Hits(NamedTuple):
    """Holds the matching lines of one text."""

    total: int
    lines: list[HitLine]
    """The first matching lines."""


def compiled(pattern: Pattern, *, case_sensitive: bool) -> "regex.Pattern[str]":
    """Compile a pattern for the built-in engine. Raises InvalidPattern."""
    import regex  # noqa: PLC0415  slow to import, and not needed with ripgrep

    flags = regex.VERSION1 | (0 if case_sensitive else regex.IGNORECASE)
    try:
        return regex.compile(f"{_PREFIX}{for_builtin(pattern)})", flags)
    except regex.error as error:
        given = pattern.given
        raise InvalidPattern("regex", given, str(error), 0, re.escape(given)) from None


class LineMatcher:
    """Matches lines with one pattern."""

    def __init__(self, pattern: Pattern, *, case_sensitive: bool) -> None:
        self._pattern, self._case_sensitive = pattern, case_sensitive
        self._text = (pattern.literal or "").encode() if case_sensitive else b""
        texts = () if self._text else required_texts(pattern, fold_case=not case_sensitive)
        self._needed = [text.encode(errors="surrogateescape") for text in texts]
        if not self._text:
            self._regex  # noqa: B018  raises InvalidPattern now, before a file is read

    def hits(self, data: bytes, keep: int, seconds: float) -> Hits:
        """Return the number of matching lines and the first `keep` of them. Raises TimeoutError after `seconds`."""
        deadline = time.monotonic() + seconds
        found = self._found(data, deadline)
        lines: list[HitLine] = []
        count = number = at = 0
        for start, end, column in found:
            if count < keep:
                number += data.count(b"\n", at, start)
                at = start
                lines.append(HitLine(number + 1, start, end, column))
            count += 1
        return Hits(count, lines)

    def parts(self, line: str, seconds: float) -> list[str]:
        """Return the parts of a line that the pattern matches; empty ones are left out. Raises TimeoutError."""
        return [found[0] for found in self._regex.finditer(line, timeout=seconds) if found[0]]

    def _found(self, data: bytes, deadline: float) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and match column of every matching line."""
        if self._text:
            return _plain(data, self._text)
        if self._needed:
            return self._on_lines(data, self._candidates(data), deadline)
        if self._pattern.needs_pcre:
            return self._on_lines(data, _all_lines(data), deadline)
        return self._over_all(data, deadline)

    @cached_property
    def _regex(self) -> "regex.Pattern[str]":
        return compiled(self._pattern, case_sensitive=self._case_sensitive)

    @cached_property
    def _any_needed(self) -> Callable[[bytes, int], re.Match[bytes] | None]:
        return re.compile(b"|".join(map(re.escape, self._needed))).search

    def _candidates(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of every line that contains one of the required texts."""
        held = data if self._case_sensitive else data.lower()
        if not any(text in held for text in self._needed):
            return
        if len(self._needed) == 1:
            for start, end, _ in _plain(held, self._needed[0]):
                yield start, end
            return
        found = self._any_needed(held, 0)
        while found:
            start, end = _line_around(held, found.start())
            yield start, end
            found = self._any_needed(held, end)

    def _on_lines(
        self, data: bytes, spans: Iterator[tuple[int, int]], deadline: float
    ) -> Iterator[tuple[int, int, int]]:
        for start, end in spans:
            column = self._column(data[start:end], deadline)
            if column >= 0:
                yield start, end, column

    def _column(self, line: bytes, deadline: float) -> int:
        """Return the position of the first match in a line; -1 if none. A CR separates texts, as a line end does."""
        at = 0
        for part in line.split(b"\r"):
            text = part.decode(errors="surrogateescape")
            found = self._regex.search(text, timeout=_left(deadline))
            if found:
                return at + len(text[: found.start()].encode(errors="surrogateescape"))
            at += len(part) + 1
        return -1

    def _over_all(self, data: bytes, deadline: float) -> Iterator[tuple[int, int, int]]:
        """Run the pattern over the whole text."""
        text = data.decode(errors="surrogateescape")
        to_byte = _offsets(text)
        search, at = self._regex.search, 0
        while at < len(text):
            found = search(text, at, timeout=_left(deadline))
            if found is None or found.start() >= len(text):
                return
            start, end = _line_around(text, found.start())
            inside = found.end() <= end and "\r" not in text[start:end]
            byte_start, byte_end = to_byte(start), to_byte(end)
            column = (
                to_byte(found.start()) - byte_start if inside else self._column(data[byte_start:byte_end], deadline)
            )
            if column >= 0:
                yield byte_start, byte_end, column
            at = end + 1


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _plain(data: bytes, text: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and match column of every line that contains the text."""
    find, size = data.find, len(data)
    at = find(text)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = find(b"\n", at)
        end = size if end < 0 else end
        yield start, end, at - start
        at = find(text, end)


def _all_lines(data: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield start, end
        start = end + 1


def _line_around(data: _Text, at: int) -> tuple[int, int]:
    newline = b"\n" if isinstance(data, bytes) else "\n"
    end = data.find(newline, at)
    return data.rfind(newline, 0, at) + 1, len(data) if end < 0 else end


def _offsets(text: str) -> Callable[[int], int]:
    """Return a function from positions in the text to positions in its bytes; fast for ascending positions."""
    if text.isascii():
        return lambda position: position
    known_at = known = 0

    def to_byte(position: int) -> int:
        nonlocal known_at, known
        low, high = sorted((known_at, position))
        between = len(text[low:high].encode(errors="surrogateescape"))
        known += between if position >= known_at else -between
        known_at = position
        return known

    return to_byte
