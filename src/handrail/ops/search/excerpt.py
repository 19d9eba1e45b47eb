"""Shows a line that may be too long: a part around the match, with `…` for the missing text."""

MARK = "…"
SPARE = 4
"""Bytes beyond the width that show whether the line continues, and where its last character ends."""


def text_of(line: bytes) -> str:
    """Decode a line and drop its CR."""
    return line.removesuffix(b"\r").decode(errors="surrogateescape")


def window_start(column: int, width: int) -> int:
    """Return the byte at which the shown part starts: a quarter of it comes before the match at byte `column`."""
    return max(0, column - width // 4)


def excerpt(line: bytes, column: int, width: int) -> tuple[str, bool]:
    """Return the line as it is shown, and whether a part is missing."""
    line = line.removesuffix(b"\r")
    if len(line) <= width:
        return text_of(line), False
    start = window_start(column, width)
    return piece(line[start : start + width + SPARE], start, width), True


def piece(window: bytes, start: int, width: int) -> str:
    """Return the shown part of a long line. `window` is the line from byte `start` on, with `SPARE` more bytes."""
    first = _boundary(window, 0) if start else 0
    end = len(window)
    if end > width:
        end = width
        while end > width - 3 and _continues(window, end):
            end -= 1
    shown = window[first:end].decode(errors="surrogateescape")
    return (MARK if start else "") + shown + (MARK if end < len(window) else "")


def _boundary(window: bytes, at: int) -> int:
    """Return the first index from `at` on where a character begins."""
    while at < 3 and _continues(window, at):
        at += 1
    return at


def _continues(window: bytes, at: int) -> bool:
    """Return whether the byte at `at` belongs to the character before it."""
    return at < len(window) and window[at] & 0xC0 == 0x80
