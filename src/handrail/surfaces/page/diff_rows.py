"""Lays a diff out in rows, side by side or one below the other. The diff is the one that the terminal shows."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.surfaces.approval_text import visible_lines

Row = list[str | int]
"""The kind of the row, then line number and text of the old side, then those of the new side; 0 for no line.

A line longer than `_WIDEST` goes on in further rows, whose line number is -1: no browser has to lay out one endless
line, and nothing hides far to the right.

The kind is `file`, `hunk`, `note`, ` ` (the same on both sides), `-`, `+`, or `~` (both sides, different).
"""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*")
_WIDEST = 1000
"""The most characters of a row."""
_ON = -1
"""The line number of a row that goes on with the line before."""
_PAIRED = ("--- ", "+++ ")


class Diff(NamedTuple):
    """Holds the rows of a diff in both layouts."""

    unified: list[Row]
    split: list[Row]
    added: int
    removed: int
    files: list[str]

    @classmethod
    def of(cls, text: str) -> "Diff":
        unified = [part for row in _rows(visible_lines(text)) for part in _parts(row)]
        count = {kind: sum(row[0] == kind and _ON not in (row[1], row[3]) for row in unified) for kind in "+-"}
        files = [str(row[2]) for row in unified if row[0] == "file"]
        return cls(unified, [*_beside(unified)], count["+"], count["-"], files)

    def piece(self, *, split: bool, start: int, count: int) -> list[Row]:
        """Return some rows of one layout."""
        return (self.split if split else self.unified)[start : start + count]

    @property
    def summary(self) -> dict[str, object]:
        """How long the diff is, for a page that loads its rows later."""
        lengths = {"unified": len(self.unified), "split": len(self.split)}
        widest = max((len(str(row[2])) + 3 * str(row[2]).count("\t") for row in self.unified), default=0)
        widest = max(widest, max((len(str(row[4])) + 3 * str(row[4]).count("\t") for row in self.unified), default=0))
        known = {"added": self.added, "removed": self.removed, "widest": widest}
        return {**lengths, **known, "files": self.files[:100]}


def _rows(lines: list[str]) -> Iterator[Row]:
    old = new = 0
    in_hunk = False
    for line in lines:
        if found := _HUNK.fullmatch(line):
            in_hunk, old, new = True, int(found[1]), int(found[2])
            yield ["hunk", 0, line, 0, ""]
        elif line.startswith("diff --git "):
            in_hunk = False
            yield ["file", 0, _name(line), 0, ""]
        elif in_hunk and line[0] == "-":
            yield ["-", old, line[1:], 0, ""]
            old += 1
        elif in_hunk and line[0] == "+":
            yield ["+", 0, "", new, line[1:]]
            new += 1
        elif in_hunk and line[0] == " ":
            yield [" ", old, line[1:], new, line[1:]]
            old, new = old + 1, new + 1
        elif in_hunk or not line.startswith(_PAIRED):
            yield ["note", 0, line, 0, ""]


def _parts(row: Row) -> Iterator[Row]:
    """Yield a row, or the rows that its line is too long for."""
    kind, old, left, new, right = row
    length = max(len(str(left)), len(str(right)))
    if length <= _WIDEST:
        yield row
        return
    for start in range(0, length, _WIDEST):
        numbers = (old, new) if start == 0 else (_ON if old else 0, _ON if new else 0)
        end = start + _WIDEST
        yield [kind, numbers[0], str(left)[start:end], numbers[1], str(right)[start:end]]


def _name(head: str) -> str:
    """Return the name in `diff --git a/NAME b/NAME`, which names the same file twice."""
    names = head.removeprefix("diff --git ")
    half = names[: len(names) // 2]
    return half.removeprefix('"').removeprefix("a/").removesuffix('"')


def _beside(rows: list[Row]) -> Iterator[Row]:
    """Put removed lines side by side with the added lines that follow them."""
    old: list[Row] = []
    new: list[Row] = []
    for row in [*rows, None]:
        if row is not None and row[0] == "-" and not new:
            old.append(row)
        elif row is not None and row[0] == "+":
            new.append(row)
        else:
            yield from _paired(old, new)
            old, new = [], []
            if row is not None and row[0] == "-":
                old.append(row)
            elif row is not None:
                yield row


def _paired(old: list[Row], new: list[Row]) -> Iterator[Row]:
    for n in range(max(len(old), len(new))):
        left = old[n][1:3] if n < len(old) else [0, ""]
        right = new[n][3:5] if n < len(new) else [0, ""]
        kind = "~" if left[0] and right[0] else "-" if left[0] else "+"
        yield [kind, *left, *right]
