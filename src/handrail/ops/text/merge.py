"""Merges two changed versions of one text, line by line, if their changes do not touch."""

from handrail.ops.text.line_diff import OPEN, Span, changes, lines_of


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the text with the changes of both sides; None if changes touch or a side is not text.

    A change that both sides made counts once.
    """
    if b"\0" in base + ours + theirs:
        return None
    old, mine, other = lines_of(base), lines_of(ours), lines_of(theirs)
    left, right = changes(old, mine), changes(old, other)
    merged: list[bytes] = []
    at = 0
    while left or right:
        if left and right and _touch(left[0], right[0]):
            one, two = left.pop(0), right.pop(0)
            if one[:2] != two[:2] or mine[one[2] : one[3]] != other[two[2] : two[3]]:
                return None
            span, lines = one, mine
        elif not right or (left and left[0][:2] < right[0][:2]):
            span, lines = left.pop(0), mine
        else:
            span, lines = right.pop(0), other
        merged += old[at : span[0]] + lines[span[2] : span[3]]
        at = span[1]
    return _joined(merged + old[at:])


def _touch(one: Span, two: Span) -> bool:
    """Return whether two changes overlap or are adjacent: an insertion next to a change may belong to it."""
    return one[0] <= two[1] and two[0] <= one[1]


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line[:-1] if line.endswith(OPEN) else line + b"\n" for line in lines)
