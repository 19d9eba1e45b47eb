"""Edits files by line number. Unchanged lines keep their own line ends; new lines get the file's."""

import re

from handrail.model.faults import BadLineRange
from handrail.ops.text.buffer import TextBuffer, to_lf

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")


def edit_lines(path: str, data: bytes, operation: str, span: tuple[int, int], content: str) -> tuple[bytes, int]:
    """Return the new bytes and their number of lines. `span` is first and last line; an insert goes after the first."""
    text = TextBuffer.of(data)
    lines = _LINE.findall(text.raw)
    first, last = span
    low, last = (0, max(span)) if operation == "insert" else (1, last)
    if not (low <= first <= last <= len(lines)):
        raise BadLineRange(path, first, last, len(lines), low)
    new = [] if operation == "delete" else _new_lines(content, text.newline)
    open_end = bool(lines) and not lines[-1].endswith("\n")
    start, stop = (first, first) if operation == "insert" else (first - 1, last)
    if open_end:
        lines[-1] += text.newline
    lines[start:stop] = new
    if open_end and lines:
        lines[-1] = lines[-1].removesuffix(text.newline)
    return "".join(lines).encode(errors="surrogateescape"), len(lines)


def _new_lines(content: str, newline: str) -> list[str]:
    body = to_lf(content).removesuffix("\n")
    return [f"{line}{newline}" for line in body.split("\n")]


def count_lines(data: bytes) -> int:
    """Count the lines; a last line without a newline counts too."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
