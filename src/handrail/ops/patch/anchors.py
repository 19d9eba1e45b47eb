"""Finds the parts of a file that the `@@` lines of a hunk name."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from handrail.ops.patch.indent import indent
from handrail.ops.patch.line_search import Haystack, Strictness

_OPENS = re.compile(rb"[A-Za-z_$@\x80-\xff]")
"""The first character of a line that opens a new part of a file: a name, not a bracket, a comment or a list item."""


class AnchorScope(NamedTuple):
    """Holds what lies below a line after `@@`: the lines up to the next that opens a part and is indented no deeper."""

    line: int
    """The line itself, which a hunk may repeat as its first context line."""
    after: int
    end: int


class AnchorFinder:
    """Finds the scopes of anchors in one file."""

    def __init__(self, lines: list[bytes], hay: Haystack) -> None:
        self._lines, self._hay = lines, hay
        self._ends: dict[int, int] = {}
        self._known: dict[tuple[bytes, ...], list[AnchorScope]] = {}

    def below(self, anchors: tuple[bytes, ...]) -> list[AnchorScope]:
        """Return the scopes of the last anchor, inside those of the earlier ones if it is there; empty if missing."""
        if not anchors:
            return [AnchorScope(-1, 0, len(self._lines))]
        if anchors not in self._known:
            outer = self.below(anchors[:-1])
            self._known[anchors] = self._inside(anchors[-1], outer) if outer else []
        return self._known[anchors]

    def _inside(self, anchor: bytes, outer: list[AnchorScope]) -> list[AnchorScope]:
        levels = (level for level in Strictness if level >= Strictness.TRAILING)  # an anchor has lost its line end
        found = next(filter(None, (list(self._hay.all([anchor], level, outer[0].after)) for level in levels)), [])
        within = [line for first, end in merged(outer) for line in found if first < line < end]
        return [AnchorScope(line, line + 1, self._end(line)) for line in within or found]

    def _end(self, line: int) -> int:
        if line not in self._ends:
            depth = len(indent(self._lines[line]))
            following = range(line + 1, len(self._lines))
            self._ends[line] = next((at for at in following if self._opens(at, depth)), len(self._lines))
        return self._ends[line]

    def _opens(self, at: int, depth: int) -> bool:
        """Return whether a line opens a new part of the file and is indented by at most `depth`."""
        line = self._lines[at]
        space = len(indent(line))
        return space <= depth and bool(_OPENS.match(line, space))


def merged(scopes: Sequence[AnchorScope]) -> list[tuple[int, int]]:
    """Return the lines of all scopes as spans that do not overlap."""
    spans: list[tuple[int, int]] = []
    for scope in scopes:
        if spans and scope.line < spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], scope.end)
        else:
            spans.append((scope.line, scope.end))
    return spans
