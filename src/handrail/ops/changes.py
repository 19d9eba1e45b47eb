"""Which lines differ between two lists of lines, in time that stays near linear.

Equal ends are set aside, lines that occur once on both sides are matched in order (patience), and what is
left between them is worked out exactly (Myers) while the effort lasts; beyond that it counts as replaced.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

Span = tuple[int, int, int, int]
"""old start, old end, new start, new end"""

_EFFORT = 500_000


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Span]:
    """The spans that differ, top down."""
    spans: list[Span] = []
    effort = _EFFORT
    for whole in _between_unique_lines(old, new, (0, len(old), 0, len(new))):
        for span in _between_unique_lines(old, new, whole):
            exact, spent = _exact(old, new, span, effort)
            effort -= spent
            spans += exact
    return _joined(spans)


def _between_unique_lines(old: Sequence[bytes], new: Sequence[bytes], span: Span) -> Iterator[Span]:
    low, high, new_low, new_high = _trimmed(old, new, span)
    if low == high or new_low == new_high:
        if low != high or new_low != new_high:
            yield low, high, new_low, new_high
        return
    there = _unique(old, low, high)
    pairs = [(there[line], i) for line, i in _unique(new, new_low, new_high).items() if line in there]
    pairs = [(low - 1, new_low - 1), *_longest_rise(sorted(pairs)), (high, new_high)]
    for (start, new_start), (end, new_end) in pairwise(pairs):
        part = _trimmed(old, new, (start + 1, end, new_start + 1, new_end))
        if part[0] != part[1] or part[2] != part[3]:
            yield part


def _trimmed(old: Sequence[bytes], new: Sequence[bytes], span: Span) -> Span:
    low, high, new_low, new_high = span
    while low < high and new_low < new_high and old[low] == new[new_low]:
        low, new_low = low + 1, new_low + 1
    while low < high and new_low < new_high and old[high - 1] == new[new_high - 1]:
        high, new_high = high - 1, new_high - 1
    return low, high, new_low, new_high


def _unique(lines: Sequence[bytes], low: int, high: int) -> dict[bytes, int]:
    part = lines[low:high]
    counts = Counter(part)
    return {line: i for i, line in enumerate(part, low) if counts[line] == 1}


def _longest_rise(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs, sorted by their first numbers, whose second numbers rise too."""
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


def _exact(old: Sequence[bytes], new: Sequence[bytes], span: Span, effort: int) -> tuple[list[Span], int]:
    """The fewest changes that lead from one to the other, and the effort spent on them."""
    low, high, new_low, new_high = span
    height, width = high - low, new_high - new_low
    if not height or not width:
        return [span], 0
    reach, trail, spent = {1: 0}, [], 0
    for distance in range(height + width + 1):
        trail.append(reach.copy())
        for diagonal in range(-distance, distance + 1, 2):
            down = diagonal == -distance or (
                diagonal != distance and reach.get(diagonal - 1, -1) < reach.get(diagonal + 1, -1)
            )
            x = reach[diagonal + 1] if down else reach[diagonal - 1] + 1
            y, from_x = x - diagonal, x
            while x < height and y < width and old[low + x] == new[new_low + y]:
                x, y = x + 1, y + 1
            reach[diagonal] = x
            spent += 1 + x - from_x
            if x >= height and y >= width:
                return _walk_back(trail, span), spent
        spent += distance
        if spent > effort:
            break
    return [span], spent


def _walk_back(trail: list[dict[int, int]], span: Span) -> list[Span]:
    low, _, new_low, _ = span
    x, y = span[1] - low, span[3] - new_low
    spans: list[Span] = []
    for distance in range(len(trail) - 1, 0, -1):
        reach, diagonal = trail[distance], x - y
        down = diagonal == -distance or (
            diagonal != distance and reach.get(diagonal - 1, -1) < reach.get(diagonal + 1, -1)
        )
        previous = diagonal + 1 if down else diagonal - 1
        x = reach[previous]
        y = x - previous
        step = (0, 1) if down else (1, 0)
        spans.append((low + x, low + x + step[0], new_low + y, new_low + y + step[1]))
    return spans[::-1]


def _joined(spans: list[Span]) -> list[Span]:
    """Spans that touch, as one."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1][1] == span[0] and joined[-1][3] == span[2]:
            joined[-1] = (joined[-1][0], span[1], joined[-1][2], span[3])
        else:
            joined.append(span)
    return joined
