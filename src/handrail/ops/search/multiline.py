"""Finds matches that span lines, for the built-in engine: every line that a match touches counts."""

import re
import time
from collections.abc import Iterator

from handrail.model.faults import InvalidPattern
from handrail.ops.search.matcher import HitLine, Hits
from handrail.ops.search.regex import refuse_huge


class SpanMatcher:
    """Matches a whole text with one pattern; a dot matches line ends, `^` and `$` match at every line."""

    def __init__(self, given: str, *, case_sensitive: bool) -> None:
        import regex  # noqa: PLC0415  slow to import, and few searches span lines

        refuse_huge(given)
        flags = regex.VERSION1 | regex.MULTILINE | regex.DOTALL | (0 if case_sensitive else regex.IGNORECASE)
        try:
            self._regex: regex.Pattern[str] = regex.compile(given, flags)
        except regex.error as error:
            at = int(getattr(error, "pos", 0) or 0)
            raise InvalidPattern("regex", given, str(getattr(error, "msg", error)), at, re.escape(given)) from None

    def hits(self, data: bytes, keep: int, seconds: float) -> Hits:
        """Return the number of lines that matches touch, and the first `keep`. Raises TimeoutError after `seconds`."""
        text, lines, count = data.decode(errors="surrogateescape"), list[HitLine](), 0
        number = at = byte = 0
        for start, end, first in self._lines(text, seconds):
            if count < keep:
                number += text.count("\n", at, start)
                byte += _size(text[at:start])
                size = _size(text[start:end])
                lines.append(HitLine(number + 1, byte, byte + size, _size(text[start:first])))
                at = start
            count += 1
        return Hits(count, lines)

    def _lines(self, text: str, seconds: float) -> Iterator[tuple[int, int, int]]:
        """Yield start, end and place of the match of every line that a match touches, each line once."""
        done, deadline = 0, time.monotonic() + seconds
        while done < len(text):
            found = self._regex.search(text, done, timeout=max(deadline - time.monotonic(), 0.001))
            if found is None or found.start() >= len(text):
                return
            last, start = max(found.start(), found.end() - 1), text.rfind("\n", 0, found.start()) + 1
            while start <= last:
                end = text.find("\n", start)
                end = len(text) if end < 0 else end
                yield start, end, max(start, min(found.start(), end))
                start = end + 1
            done = start


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
