"""Makes text safe to display to the user: nothing invisible, nothing that moves the cursor, nothing endless."""

import re
import unicodedata
from itertools import accumulate, takewhile

from handrail.model.limits import KIB, MIB

# Python calls these printable, but terminals show nothing or a blank: fillers, joiners, variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U0001107f\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_PLAIN = frozenset("\t\n")

_TAB = 8
_INDENT = " " * 4
_COLOURED = re.compile(r"(\x1b\[\d+m)(.*)(\x1b\[0m)", re.DOTALL)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")


def visible(text: str) -> str:
    """Replace by escapes all characters that are invisible or look like a plain space; tabs and line ends stay.

    These are control characters, direction and format marks, blanks of every width, private and unassigned characters,
    and undecodable bytes.
    """
    if text.isascii() and text.isprintable():
        return text
    unseen = {ord(char): _escape(char) for char in set(text) - _PLAIN if not char.isprintable() or _BLANK.match(char)}
    return text.translate(unseen) if unseen else text


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # an undecodable byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def without_escapes(text: str) -> str:
    """Remove terminal control sequences, for a reader that is not a terminal."""
    return _ESCAPES.sub("", text)


def one_line(text: str, width: int = 200) -> str:
    """Return the text as one visible line, with line ends and tabs escaped, cut to `width` characters."""
    shown = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def fold(lines: list[str], most: int, width: int = 10**9) -> list[str]:
    """Cut lines that fill more than `most` rows of a terminal: keep the start and the end, and say what is missing."""
    if _rows(lines, width) <= most:
        return lines
    lines = [_shortened(line, most * width // 4) for line in lines]
    if _rows(lines, width) <= most:
        return lines
    head = _that_fit(lines, most * 2 // 3, width)
    tail = _that_fit(lines[: head - 1 : -1], most - most * 2 // 3 - 1, width)
    return [*lines[:head], f"… {len(lines) - head - tail} lines not shown …", *lines[len(lines) - tail :]]


def _rows(lines: list[str], width: int) -> int:
    return sum(max(1, -(-len(line) // width)) for line in lines)


def _that_fit(lines: list[str], rows: int, width: int) -> int:
    """Return how many of the first lines fit into `rows` rows; at least one."""
    filled = accumulate(_rows([line], width) for line in lines)
    return max(1, sum(1 for _ in takewhile(lambda so_far: so_far <= rows, filled)))


def _shortened(line: str, room: int) -> str:
    if len(line) <= room:
        return line
    ends = max(1, room // 2 - 20)
    return f"{line[:ends]} … {len(line) - 2 * ends} characters not shown … {line[-ends:]}"


def wrapped(text: str, width: int) -> str:
    """Break lines that are wider than a terminal and indent their rest, so that no content looks like a new line."""
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if len(line) * (1 if line.isascii() and "\t" not in line else _TAB) <= width:
        return line
    found = _COLOURED.fullmatch(line)
    begin, inner, end = found.groups() if found else ("", line, "")
    rows, row, used = list[str](), "", 0
    for char in inner:
        taken = _most_columns(char)
        if used + taken > width and row:
            rows.append(row)
            row, used = _INDENT, len(_INDENT)
        row, used = row + char, used + taken
    return "\n".join(f"{begin}{each}{end}" for each in (*rows, row))


def _most_columns(char: str) -> int:
    """Return the most columns that a terminal uses for a character."""
    if char == "\t":
        return _TAB
    return 1 if char.isascii() or unicodedata.east_asian_width(char) in ("N", "Na", "H") else 2


def cut_middle(text: str, most: int) -> str:
    """Return a text, cut in the middle if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = max(1, most // 2)
    return f"{text[:half]}\n… {len(text) - 2 * half} characters not shown …\n{text[-half:]}"


def that_fit(lines: list[str], room: int) -> list[str]:
    """Return the first lines that fit into a number of bytes, line ends included."""
    sizes = accumulate(len(line.encode(errors="surrogateescape")) + 1 for line in lines)
    return lines[: sum(1 for _ in takewhile(lambda so_far: so_far <= room, sizes))]


def duration(milliseconds: float) -> str:
    """Format a duration, such as `0.4ms`, `250ms` or `12.3s`."""
    if milliseconds < 1:
        return f"{milliseconds:.1f}ms"
    return f"{milliseconds:.0f}ms" if milliseconds < 10_000 else f"{milliseconds / 1000:.1f}s"


def age(seconds: float) -> str:
    """Return a time span in its largest unit: `7s`, `12m`, `3h` or `2d`."""
    whole = max(0, int(seconds))
    for unit, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= unit:
            return f"{whole // unit}{letter}"
    return f"{whole}s"


def short_size(size: int) -> str:
    """Return a size as `du -h` shows it: `0B`, `512B`, `1.5K`, `4K`, `2.3M`."""
    unit = min(max(size.bit_length() - 1, 0) // 10, 3)
    scaled = size / KIB**unit
    return f"{scaled:.0f}{'BKMG'[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{'BKMG'[unit]}"


def size_text(size: int, form: str = "g") -> str:
    """Return a size in the largest unit that fits: `20MB`, `1.5KB`, `300 bytes`."""
    for unit, name in ((MIB, "MB"), (KIB, "KB")):
        if size >= unit:
            return f"{size / unit:{form}}{name}"
    return f"{size} bytes"
