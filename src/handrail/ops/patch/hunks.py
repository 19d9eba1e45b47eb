"""Finds the end of a hunk in a unified diff: by its counts if they are right, else where the next part begins."""

from handrail.model.faults import BadPatch
from handrail.ops.patch.chunks import Header, is_line, make_chunk, read_header
from handrail.ops.patch.header_names import read_name, strip_prefixes
from handrail.ops.patch.model import Chunk


def read_hunk(lines: list[bytes], at: int, number: int) -> tuple[Chunk, int, bool]:
    """Read the hunk whose `@@` line is at `at`; return it, the index after it, and whether its counts were right."""
    header, anchors = read_header(lines[at]), []
    while at + 1 < len(lines) and lines[at + 1].startswith(b"@@") and header.start is None:
        anchors += [header.anchor] if header.anchor else []
        at += 1
        header = read_header(lines[at])
    anchors += [header.anchor] if header.anchor else []
    end = _counted(lines, at + 1, header)
    counted = end is not None
    if end is None:
        end = _uncounted(lines, at + 1)
    chunk = make_chunk(number, at + 1, header, lines[at + 1 : end], anchors=tuple(anchors), counted=counted)
    return chunk, end, counted


def names_follow(lines: list[bytes], at: int) -> bool:
    """Return whether the two lines from `at` on are `--- ` and `+++ `, which begin a file outside of a hunk."""
    return lines[at].startswith(b"--- ") and at + 1 < len(lines) and lines[at + 1].startswith(b"+++ ")


def _counted(lines: list[bytes], at: int, header: Header) -> int | None:
    """Return the index after the hunk by its counts; None if it has none or they are wrong."""
    if header.counts is None:
        return None
    old, new = header.counts
    while (old > 0 or new > 0) and at < len(lines):
        line = lines[at]
        if not is_line(line) or _surely_names(lines, at):
            return None
        old -= line[:1] not in (b"+", b"\\")
        new -= line[:1] not in (b"-", b"\\")
        at += 1
    if old or new:
        return None
    while at < len(lines) and lines[at].startswith(b"\\"):
        at += 1
    return at if _ends_clean(lines, at) else None


def _ends_clean(lines: list[bytes], at: int) -> bool:
    """Return whether no line that looks like a part of the hunk follows."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at == len(lines) or not is_line(lines[at]) or names_follow(lines, at) or _is_signature(lines[at])


def _uncounted(lines: list[bytes], at: int) -> int:
    """Return the index of the first line that cannot belong to the hunk."""
    while at < len(lines) and is_line(lines[at]) and not names_follow(lines, at) and not _is_signature(lines[at]):
        at += 1
    return at


def _surely_names(lines: list[bytes], at: int) -> bool:
    """Return whether the next file begins here, even if a count goes further: two names of one file, then a hunk."""
    if not names_follow(lines, at) or not lines[at + 2 : at + 3] or not lines[at + 2].startswith(b"@@ -"):
        return False
    old, new = strip_prefixes(read_name(lines[at][4:]).text, read_name(lines[at + 1][4:]).text)
    return old == new or not old or not new


def _is_signature(line: bytes) -> bool:
    """Return whether this is the line above the signature of a mail."""
    return line.rstrip() == b"--"


def lost_line(lines: list[bytes], at: int) -> BadPatch | None:
    """Return the fault for a signed line in prose after a hunk with wrong counts: it is likely a lost edit."""
    line = lines[at]
    if line[:1] in (b"+", b"-") and not names_follow(lines, at) and not _is_signature(line):
        return BadPatch("bad_line", at + 1, line.decode(errors="surrogateescape"))
    return None
