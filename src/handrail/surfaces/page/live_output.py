"""Keeps the newest output of one command, terminal or job, in the form that a browser shows."""

import codecs
import re

from handrail.kernel.page.page_messages import as_text
from handrail.ops.text.display import visible, without_escapes

_UNFINISHED = re.compile(r"\x1b[^\x1b]{0,64}$")
"""A control sequence that may go on in the next piece."""


class LiveOutput:
    """Holds output as text without control sequences, or, if `raw`, as the bytes that a terminal emulator shows."""

    def __init__(self, most: int, *, raw: bool = False) -> None:
        self._most, self._raw = most, raw
        self._kept = bytearray()
        self._skipped = self._pieces = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def add(self, data: bytes, skipped: int) -> dict[str, object]:
        """Keep a piece of output; return it with its number. `skipped` bytes before it were not sent."""
        shown = data if self._raw else self._as_text(data).encode()
        self._kept += shown
        self._pieces += 1
        self._skipped += skipped
        if (excess := len(self._kept) - self._most) > 0:
            del self._kept[:excess]
            self._skipped += excess
        return {"n": self._pieces, "skipped": skipped, "data": as_text(shown) if self._raw else shown.decode()}

    def shown(self) -> dict[str, object]:
        """Return all that is kept, with the number of the last piece."""
        kept = bytes(self._kept)
        return {
            "n": self._pieces,
            "skipped": self._skipped,
            "data": as_text(kept) if self._raw else kept.decode(errors="replace"),
        }

    def _as_text(self, data: bytes) -> str:
        text = self._held + self._decoder.decode(data)
        self._held = ""
        found = _UNFINISHED.search(text)
        if found and without_escapes(found[0]) == found[0]:
            text, self._held = text[: found.start()], found[0]
        return visible(without_escapes(text).replace("\r\n", "\n"))
