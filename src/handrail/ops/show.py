"""Making text fit to be shown to a person: nothing invisible, nothing that moves the cursor, nothing endless."""

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")


def visible(text: str) -> str:
    """Control characters, marks of direction and undecodable bytes as escapes; tabs and line ends stay."""
    return _UNSEEN.sub(lambda match: _escape(match[0]), text)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def without_escapes(text: str) -> str:
    """Terminal control sequences taken out, for a reader that is not a terminal."""
    return _ESCAPES.sub("", text)


def one_line(text: str, width: int = 200) -> str:
    shown = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def fold(lines: list[str], most: int) -> list[str]:
    """The beginning and the end of a long text, with a line that says how much is left out."""
    if len(lines) <= most:
        return lines
    head = most * 2 // 3
    tail = most - head - 1
    return [*lines[:head], f"… {len(lines) - head - tail} lines not shown …", *lines[-tail:]]


def duration(milliseconds: float) -> str:
    if milliseconds < 1:
        return f"{milliseconds:.1f}ms"
    return f"{milliseconds:.0f}ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.1f}s"
