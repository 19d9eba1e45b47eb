"""Showing a line that may be too long: a piece around the match, with `…` where something is missing."""

MARK = "…"
SPARE = 4
"""Bytes beyond the width that tell whether the line goes on, and where its last character ends."""


def text_of(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="surrogateescape")


def window_start(column: int, width: int) -> int:
    """Where the piece begins that shows the match at byte `column`, with a quarter of it before the match."""
    return max(0, column - width // 4)


def excerpt(line: bytes, column: int, width: int) -> tuple[str, bool]:
    """A line as it is shown, and whether something is missing."""
    line = line.removesuffix(b"\r")
    if len(line) <= width:
        return text_of(line), False
    start = window_start(column, width)
    return piece(line[start : start + width + SPARE], start, width), True


def piece(window: bytes, start: int, width: int) -> str:
    """The shown part of a long line. `window` is the line from byte `start` on, `SPARE` bytes longer than shown."""
    first = _boundary(window, 0) if start else 0
    end = len(window)
    if end > width:
        end = width
        while end > width - 3 and _continues(window, end):
            end -= 1
    shown = window[first:end].decode(errors="surrogateescape")
    return (MARK if start else "") + shown + (MARK if end < len(window) else "")


def _boundary(window: bytes, at: int) -> int:
    while at < 3 and _continues(window, at):
        at += 1
    return at


def _continues(window: bytes, at: int) -> bool:
    """Whether the byte at `at` belongs to the character before it."""
    return at < len(window) and window[at] & 0xC0 == 0x80
