"""Finds matches that span lines: every line that a match touches counts. ripgrep names the files that have one."""

import time
from collections.abc import Iterator

from handrail.ops.search.matcher import HitLine, Hits, compiled
from handrail.ops.search.regex import Pattern


class SpanMatcher:
    """Matches a whole text with one pattern."""

    def __init__(self, pattern: Pattern, *, case_sensitive: bool) -> None:
        self._regex = compiled(pattern, case_sensitive=case_sensitive)

    def hits(self, data: bytes, keep: int, seconds: float) -> Hits:
        """Return the number of lines that matches touch, and the first `keep`. Raises TimeoutError after `seconds`."""
        text, lines, count = data.decode(errors="surrogateescape"), list[HitLine](), 0
        number = at = byte = 0
        for start, end, first in self._lines(text, time.monotonic() + seconds):
            if count < keep:
                number += text.count("\n", at, start)
                byte += _size(text[at:start])
                size = _size(text[start:end])
                lines.append(HitLine(number + 1, byte, byte + size, _size(text[start:first])))
                at = start
            count += 1
        return Hits(count, lines)

    def _lines(self, text: str, deadline: float) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and place of the match of every line that a match touches, each line once."""
        done = 0
        for found in self._regex.finditer(text, timeout=max(deadline - time.monotonic(), 0.001)):
            if time.monotonic() > deadline:
                raise TimeoutError
            if found.start() >= len(text):
                return
            last, start = max(found.start(), found.end() - 1), text.rfind("\n", 0, found.start()) + 1
            start = max(start, done)
            while start <= last:
                end = text.find("\n", start)
                end = len(text) if end < 0 else end
                yield start, end, max(start, min(found.start(), end))
                start = done = end + 1


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
