"""Finds the lines that differ between two lists of lines, in nearly linear time.

Equal runs are skipped by comparing slices. After such a run, a change ends at the nearest place from which both sides
continue equally. If there is no near place, lines that occur once on both sides are matched in order (patience diff).
The lines between matches are compared exactly (Myers) until the effort is spent; after that they count as replaced.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int, int, int]
"""Old start, old end, new start, new end."""

OPEN = b"\n"
"""The marker at the end of a last line that has no newline in the file."""
_EFFORT = 500_000
_NEAR, _ALIKE = 24, 4


def lines_of(data: bytes) -> list[bytes]:
    """Split data into lines without their newlines.

    A final line without a newline gets the marker `OPEN`, so that it never equals the same line with a newline.
    """
    lines = data.split(b"\n")
    if lines[-1]:
        lines[-1] += OPEN
    else:
        lines.pop()
    return lines


def differing(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return both texts without the whole lines that they have in common at the start and at the end."""
    start = old.rfind(b"\n", 0, _common(old, new)) + 1
    old, new = old[start:], new[start:]
    kept = old.find(b"\n", len(old) - _common(old, new, from_end=True)) + 1
    cut = len(old) - kept if kept else 0
    return (old[:-cut], new[:-cut]) if cut else (old, new)


def _common(one: bytes, other: bytes, *, from_end: bool = False) -> int:
    """Return how many bytes both have in common at the start, or at the end."""
    longest, alike, step = min(len(one), len(other)), 0, 1 << 16
    while step:
        end = alike + step
        if end > longest:
            same = False
        elif from_end:
            same = one.endswith(other[-end : -alike or None], 0, len(one) - alike)
        else:
            same = one.startswith(other[alike:end], alike)
        if same:
            alike = end
        else:
            step //= 2
    return alike


def changes(old: list[bytes], new: list[bytes], effort: int = _EFFORT) -> list[Span]:
    """Return the spans that differ, from top to bottom."""
    spans: list[Span] = []
    for span in _differing_spans(old, new, (0, len(old), 0, len(new))):
        exact, spent = _exact(old, new, span, effort)
        effort -= spent
        spans += exact
    return _joined(spans)


def _differing_spans(old: list[bytes], new: list[bytes], whole: Span) -> Iterator[Span]:
    """Yield spans that differ, not yet compared exactly."""
    low, high, new_low, new_high = _trimmed(old, new, whole)
    while low < high and new_low < new_high:
        window, new_window = min(low + _NEAR + _ALIKE, high), min(new_low + _NEAR + _ALIKE, new_high)
        skipped = _lines_to_skip(old[low:window], new[new_low:new_window])
        if not skipped:
            yield from _between_unique_lines(old, new, (low, high, new_low, new_high))
            return
        yield low, low + skipped[0], new_low, new_low + skipped[1]
        low, new_low = low + skipped[0], new_low + skipped[1]
        run = _run(old, new, (low, high, new_low, new_high))
        low, new_low = low + run, new_low + run
    if low < high or new_low < new_high:
        yield low, high, new_low, new_high


def _lines_to_skip(old: list[bytes], new: list[bytes]) -> tuple[int, int] | None:
    """Return the smallest numbers of lines to skip on each side, so that a few equal lines follow; None if none do."""
    for total in range(1, min(2 * _NEAR, len(old) + len(new) - 2 * _ALIKE) + 1):
        for skip in range(max(0, total - _NEAR), min(total, _NEAR) + 1):
            follow = old[skip : skip + _ALIKE]
            if len(follow) == _ALIKE and follow == new[total - skip : total - skip + _ALIKE]:
                return skip, total - skip
    return None


def _run(old: list[bytes], new: list[bytes], span: Span) -> int:
    """Return how many lines are equal from the start of the span."""
    low, high, new_low, new_high = span
    longest, run, step = min(high - low, new_high - new_low), 0, 16
    while step and run < longest:
        end = min(run + step, longest)
        if old[low + run : low + end] == new[new_low + run : new_low + end]:
            run, step = end, step * 2
        elif step == 1:
            break
        else:
            step = max(step // 4, 1)
    return run


def _trimmed(old: list[bytes], new: list[bytes], span: Span) -> Span:
    """Return the span without equal lines at its start and its end."""
    low, high, new_low, new_high = span
    run = _run(old, new, span)
    low, new_low = low + run, new_low + run
    while low < high and new_low < new_high and old[high - 1] == new[new_high - 1]:
        high, new_high = high - 1, new_high - 1
    return low, high, new_low, new_high


def _between_unique_lines(old: list[bytes], new: list[bytes], span: Span) -> Iterator[Span]:
    """Match the lines that occur once on both sides, and yield the differing spans between them."""
    low, high, new_low, new_high = span
    there = _unique(old, low, high)
    pairs = [(there[line], i) for line, i in _unique(new, new_low, new_high).items() if line in there]
    pairs = [(low - 1, new_low - 1), *_longest_rise(sorted(pairs)), (high, new_high)]
    for (start, new_start), (end, new_end) in pairwise(pairs):
        part = _trimmed(old, new, (start + 1, end, new_start + 1, new_end))
        if part[0] != part[1] or part[2] != part[3]:
            yield part


def _unique(lines: list[bytes], low: int, high: int) -> dict[bytes, int]:
    part = lines[low:high]
    counts = Counter(part)
    return {line: i for i, line in enumerate(part, low) if counts[line] == 1}


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs, sorted by first number, whose second numbers increase too."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, value) in enumerate(pairs):
        pile = bisect_left(tops, value)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        ends[pile : pile + 1] = [index]
    rise = []
    index = ends[-1] if ends else -1
    while index >= 0:
        rise.append(pairs[index])
        index = before[index]
    return rise[::-1]


def _exact(old: list[bytes], new: list[bytes], span: Span, effort: int) -> tuple[list[Span], int]:
    """Return the smallest set of changes inside a span and the effort spent; the whole span if the effort runs out."""
    low, high, new_low, new_high = span
    height, width = high - low, new_high - new_low
    if not height or not width:
        return [span], 0
    reach, trail, spent = {1: 0}, [], 0
    for distance in range(height + width + 1):
        trail.append(reach.copy())
        for diagonal in range(-distance, distance + 1, 2):
            x = _furthest(reach, diagonal, distance)
            y, start = x - diagonal, x
            while x < height and y < width and old[low + x] == new[new_low + y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            spent += 1 + x - start
            if x >= height and y >= width:
                return _walk_back(trail, span), spent
        spent += distance
        if spent > effort:
            break
    return [span], spent


def _furthest(reach: dict[int, int], diagonal: int, distance: int) -> int:
    """Return the furthest old line that a path of this distance reaches on a diagonal."""
    return reach[diagonal + 1] if _down(reach, diagonal, distance) else reach[diagonal - 1] + 1


def _down(reach: dict[int, int], diagonal: int, distance: int) -> bool:
    """Return whether the best path to this diagonal adds a line instead of removing one."""
    if diagonal in (-distance, distance):
        return diagonal == -distance
    return reach[diagonal - 1] < reach[diagonal + 1]


def _walk_back(trail: list[dict[int, int]], span: Span) -> list[Span]:
    """Return the changes along the best path, found by walking it from its end to its start."""
    low, high, new_low, new_high = span
    x, y = high - low, new_high - new_low
    spans: list[Span] = []
    for distance in range(len(trail) - 1, 0, -1):
        reach, diagonal = trail[distance], x - y
        down = _down(reach, diagonal, distance)
        previous = diagonal + 1 if down else diagonal - 1
        x = reach[previous]
        y = x - previous
        spans.append((low + x, low + x + (not down), new_low + y, new_low + y + down))
    return spans[::-1]


def _joined(spans: list[Span]) -> list[Span]:
    """Join spans that touch."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1][1] == span[0] and joined[-1][3] == span[2]:
            joined[-1] = (joined[-1][0], span[1], joined[-1][2], span[3])
        else:
            joined.append(span)
    return joined
