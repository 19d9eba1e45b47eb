"""Reads one chunk of a patch: its `@@` line, then its lines. Both forms of a patch use this module."""

import re
from typing import NamedTuple

from handrail.model.faults import BadPatch
from handrail.ops.patch.model import ADDED, CONTEXT, REMOVED, Chunk

_NUMBERS = re.compile(rb"@@\s*-(\d{1,18})(?:,(\d{1,18}))?(?:\s+\+(\d{1,18})(?:,(\d{1,18}))?)?\s*(?:@@.*)?$", re.DOTALL)
_SIGNS = (CONTEXT, REMOVED, ADDED)
_EMPTY = (b"", b"\r")
"""Lines without a sign: context lines that lost their space."""


class Header(NamedTuple):
    """Holds the content of an `@@` line: the place and length of the chunk in numbers, or a line above the chunk."""

    start: int | None = None
    """The index of the first old line."""
    counts: tuple[int, int] | None = None
    """The numbers of old and new lines."""
    anchor: bytes = b""
    """A line above the chunk."""


def read_header(line: bytes) -> Header:
    """Read an `@@` line."""
    line = line.removesuffix(b"\r")
    numbers = _NUMBERS.match(line)
    if not numbers:
        anchor = line[2:].removeprefix(b" ").rstrip()
        anchor = anchor.removesuffix(b"@@").rstrip()
        return Header(anchor=b"" if anchor.strip(b" .@") == b"" else anchor)
    first, old, added, new = numbers.groups()
    counts = (int(old or 1), int(new or 1)) if added else None
    # A chunk without old lines has the number of the line before it, every other the number of its first line.
    start = int(first) if old and not int(old) else max(int(first) - 1, 0)
    return Header(start, counts)


def is_line(line: bytes) -> bool:
    """Return whether a line can belong to a chunk; an empty line is a context line that lost its space."""
    return line in _EMPTY or line[0] in _SIGNS or line[:1] == b"\\"


def make_chunk(
    number: int,
    at: int,
    header: Header,
    body: list[bytes],
    *,
    anchors: tuple[bytes, ...] = (),
    counted: bool = False,
) -> Chunk:
    """Build a chunk from its lines. `counted`: the header's counts prove that empty lines at the end belong to it."""
    lines, open_at = _signed_lines(body, at)
    padding = 0 if counted else _empty_at_end(body)
    if not counted and padding == len(body):
        raise BadPatch("no_lines", at)
    old_open, new_open = _open_sides(lines, open_at, at)
    return Chunk(
        number,
        at,
        tuple(lines),
        anchors,
        start=header.start,
        to_end=bool(open_at),
        marked=bool(open_at),
        old_open=old_open,
        new_open=new_open,
        padding=padding,
    )


def _signed_lines(body: list[bytes], at: int) -> tuple[list[bytes], dict[int, int]]:
    """Return the lines with their signs, and the index of the last line without a newline for each sign."""
    lines: list[bytes] = []
    open_at: dict[int, int] = {}
    for line in body:
        if line[:1] != b"\\":
            lines.append(b" " + line if line in _EMPTY else line)
        elif lines:
            open_at[len(lines) - 1] = lines[-1][0]
        else:
            raise BadPatch("bad_line", at + 1, line.decode(errors="surrogateescape"))
    return lines, open_at


def _empty_at_end(body: list[bytes]) -> int:
    """Count the empty lines at the end."""
    return next((count for count, line in enumerate(reversed(body)) if line not in _EMPTY), len(body))


def _open_sides(lines: list[bytes], open_at: dict[int, int], at: int) -> tuple[bool, bool]:
    """Return whether the old and the new side end without a newline; only the last line of a side may say so."""
    if not open_at:
        return False, False
    last_old = max((i for i, line in enumerate(lines) if line[0] != ADDED), default=-1)
    last_new = max((i for i, line in enumerate(lines) if line[0] != REMOVED), default=-1)
    old_open = new_open = False
    for index, sign in open_at.items():
        old, new = sign != ADDED, sign != REMOVED
        if (old and index != last_old) or (new and index != last_new):
            raise BadPatch("bad_end", at + index + 1, lines[index].decode(errors="surrogateescape"))
        old_open, new_open = old_open or old, new_open or new
    return old_open, new_open
