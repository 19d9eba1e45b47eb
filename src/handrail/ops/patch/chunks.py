"""Reading one chunk: its `@@` line, then its lines. Both forms of a patch share this."""

import re
from dataclasses import dataclass

from handrail.model.faults import BadPatch
from handrail.ops.patch.model import ADDED, CONTEXT, REMOVED, Chunk

_NUMBERS = re.compile(rb"@@\s*-(\d{1,18})(?:,(\d{1,18}))?(?:\s+\+(\d{1,18})(?:,(\d{1,18}))?)?\s*(?:@@.*)?$", re.DOTALL)
_SIGNS = (CONTEXT, REMOVED, ADDED)


@dataclass(frozen=True, slots=True)
class Header:
    """What an `@@` line says: where the chunk is by number, and how long; or a line that stands above it."""

    start: int | None = None
    counts: tuple[int, int] | None = None
    anchor: bytes = b""


def read_header(line: bytes) -> Header:
    line = line.removesuffix(b"\r")
    numbers = _NUMBERS.match(line)
    if not numbers:
        anchor = line[2:].removeprefix(b" ").rstrip()
        anchor = anchor.removesuffix(b"@@").rstrip()
        return Header(anchor=b"" if anchor.strip(b" .@") == b"" else anchor)
    first, old, added, new = numbers.groups()
    counts = (int(old or 1), int(new or 1)) if added else None
    # A chunk without old lines is numbered by the line before it, every other by its first line.
    start = int(first) if old and not int(old) else max(int(first) - 1, 0)
    return Header(start, counts)


def is_line(line: bytes) -> bool:
    """Whether a line can belong to a chunk; an empty one is a line of context that lost its space."""
    return line in (b"", b"\r") or line[0] in _SIGNS or line[:1] == b"\\"


def make_chunk(
    number: int,
    at: int,
    header: Header,
    body: list[bytes],
    *,
    anchors: tuple[bytes, ...] = (),
    counted: bool = False,
) -> Chunk:
    """`counted`: the header's counts vouch for the empty lines at the end."""
    lines: list[bytes] = []
    open_at: dict[int, int] = {}
    for line in body:
        if line[:1] == b"\\":
            if not lines:
                raise BadPatch("bad_line", at + 1, line.decode(errors="surrogateescape"))
            open_at[len(lines) - 1] = lines[-1][0]
        else:
            lines.append(b" " + line if line in (b"", b"\r") else line)
    filled = [i for i, line in enumerate(body) if line not in (b"", b"\r")]
    if not counted and not filled:
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
        padding=0 if counted else len(body) - 1 - filled[-1],
    )


def _open_sides(lines: list[bytes], open_at: dict[int, int], at: int) -> tuple[bool, bool]:
    """Which sides say that they have no newline at the end; only the last line of a side can."""
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
