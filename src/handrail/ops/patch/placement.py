"""Finds the places of the chunks in one file.

Chunks follow each other from top to bottom. A chunk with a line number goes to the place nearest to that number. A
chunk without one goes to the first place after the current position. Before any position is known, all places are
equally near: then only one place may fit, or only one that leaves room for the chunks that follow.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from handrail.model.faults import HunkApplied, HunkNotFound, HunkNotUnique, TooMuchSearch
from handrail.model.limits import Limits
from handrail.ops.patch.file_lines import Lines
from handrail.ops.patch.line_search import Haystack, OutOfEffort, Strictness, same
from handrail.ops.patch.model import ADDED, REMOVED, Chunk
from handrail.ops.text.nearest import nearest

_LEVELS = (Strictness.EXACT, Strictness.ENDS, Strictness.TRAILING, Strictness.OUTER, Strictness.FOLDED)
_WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]")


class HunkPlace(NamedTuple):
    """Holds a chunk and the place where it fits."""

    chunk: Chunk
    """The chunk without empty lines at its end that do not belong to the file."""
    start: int
    level: Strictness

    def changed(self) -> tuple[int, int]:
        """Return the span of old lines from the first change to the last."""
        before, after = self.chunk.margins
        return self.start + before, self.start + len(self.chunk.old) - after

    def floor(self) -> int:
        """Return the first index where the next chunk may start: chunks may share context, but not changes."""
        changes = any(line[0] in (ADDED, REMOVED) for line in self.chunk.lines)
        return self.changed()[1] if changes else self.start


def place_all(path: str, file: Lines, chunks: tuple[Chunk, ...], limits: Limits) -> list[HunkPlace]:
    """Find the places of all chunks, in the given order or else in the order of their line numbers.

    Raises HunkNotFound, HunkNotUnique, HunkApplied or TooMuchSearch.
    """
    placer = _Placer(path, file, chunks, limits)
    try:
        return placer.in_order(chunks)
    except HunkNotFound:
        numbered = sorted(chunks, key=lambda chunk: chunk.start or 0)
        if numbered == list(chunks) or any(chunk.start is None for chunk in chunks):
            raise
        try:
            return placer.in_order(tuple(numbered))
        except HunkNotFound:
            pass
        raise


class _BelowAnchor(NamedTuple):
    """Holds where a chunk may start below its anchors."""

    line: int
    """The line of the last anchor, which the chunk may repeat as its first context line."""
    after: int
    """The line after the last anchor."""
    level: Strictness


class _Placer:
    """Finds the places of chunks in one file."""

    def __init__(self, path: str, file: Lines, chunks: tuple[Chunk, ...], limits: Limits) -> None:
        self.path, self.file, self.limits = path, file, limits
        self.chunks = chunks
        self.size = len(file.lines)

    @cached_property
    def hay(self) -> Haystack:
        """The searchable lines, made at first use: most diffs fit at their line numbers and need no search."""
        wanted = (line for chunk in self.chunks for line in (*chunk.anchors, *chunk.old, *chunk.new))
        return Haystack(self.file.given, self.file.lines, wanted, self.limits.patch_search)

    def _matches_at(self, block: list[bytes], level: Strictness, at: int) -> bool:
        if level is Strictness.EXACT:
            return at >= 0 and self.file.lines[at : at + len(block)] == block
        return self.hay.matches_at(block, level, at)

    def in_order(self, chunks: tuple[Chunk, ...], low: int | None = None) -> list[HunkPlace]:
        """Place the chunks one after the other. `low` is the current position; None if there is none yet."""
        places: list[HunkPlace] = []
        drift = 0
        for chunk in chunks:
            try:
                if chunk.to_end:
                    place = self._at_end(chunk, low or 0)
                elif chunk.start is not None:
                    place = self._numbered(chunk, low or 0, min(chunk.start + drift, self.size + 1))
                    drift = place.start - chunk.start
                else:
                    place = self._only(chunk, chunks[1:]) if low is None else self._following(chunk, low)
            except OutOfEffort:
                raise TooMuchSearch(self.path, chunk.number) from None
            low = place.floor()
            places.append(place)
        return places

    # A chunk that ends where the file ends.

    def _at_end(self, chunk: Chunk, low: int) -> HunkPlace:
        below = self._first_below(chunk.anchors, low)
        if below is None:
            raise self._missing(chunk, low)
        low = below.line if chunk.old else below.after
        for variant in _variants(chunk):
            old = variant.old
            start = self.size - len(old)
            for level in _levels(variant):
                if start >= low and (not old or self._matches_at(old, level, start)):
                    self._refuse_applied_newline(variant)
                    return HunkPlace(variant, start, level)
        new = chunk.new
        if _is_distinctive(chunk) and self._matches_at(new, Strictness.ENDS, self.size - len(new)):
            raise HunkApplied(self.path, chunk.number, self.size - len(new) + 1)
        raise self._not_found(chunk, low)

    def _refuse_applied_newline(self, chunk: Chunk) -> None:
        """Raise HunkApplied if a chunk changes only the last newline and the file already has the new state."""
        applied = chunk.marked and chunk.old_open == self.file.closed
        if applied and chunk.old_open != chunk.new_open and chunk.old == chunk.new:
            raise HunkApplied(self.path, chunk.number, self.size)

    # A chunk with a line number.

    def _numbered(self, chunk: Chunk, low: int, at: int) -> HunkPlace:
        if not chunk.old:
            if low <= at <= self.size:
                return HunkPlace(chunk, at, Strictness.EXACT)
            raise HunkNotFound(self.path, chunk.number, "line" if at > self.size else "order", "", line=self.size)
        for variant in _variants(chunk):
            for level in self._levels_that_match(variant):
                self._refuse_applied(variant, level, at)
                places = self._by_number(variant, level, low, at)
                if len(places) > 1:
                    raise self._not_unique(variant, places)
                if places:
                    return HunkPlace(variant, places[0], level)
        raise self._missing(chunk, low)

    def _by_number(self, chunk: Chunk, level: Strictness, low: int, at: int) -> list[int]:
        old = chunk.old
        end = self.size - len(old)
        if _ends_file(chunk) and end >= low and self._matches_at(old, level, end):
            return [end]
        if at >= low and self._matches_at(old, level, at):
            return [at]
        return self.hay.nearest(old, level, low, at)

    def _refuse_applied(self, chunk: Chunk, level: Strictness, at: int) -> None:
        """Raise HunkApplied if the new lines are already at `at`: another place with the old lines would be wrong."""
        if level > Strictness.ENDS or self._matches_at(chunk.old, level, at) or not _is_distinctive(chunk):
            return
        if self._matches_at(chunk.new, level, at):
            raise HunkApplied(self.path, chunk.number, at + 1)

    # A chunk without a line number.

    def _following(self, chunk: Chunk, low: int) -> HunkPlace:
        for place in self._candidates(chunk, low):
            return place
        raise self._missing(chunk, low)

    def _only(self, chunk: Chunk, rest: tuple[Chunk, ...]) -> HunkPlace:
        candidates = self._candidates(chunk, 0)
        first, second = next(candidates, None), next(candidates, None)
        if first is None:
            raise self._missing(chunk, 0)
        if second is None or not self._rest_fits(second, rest):
            return first
        others = islice(candidates, self.limits.places - 2)
        raise self._not_unique(chunk, [place.start for place in (first, second, *others)])

    def _rest_fits(self, place: HunkPlace, rest: tuple[Chunk, ...]) -> bool:
        """Return whether the chunks that follow still have places after this one."""
        try:
            self.in_order(rest, place.floor())
        except (HunkNotFound, HunkApplied):
            return False
        except HunkNotUnique:
            pass
        return True

    def _candidates(self, chunk: Chunk, low: int) -> Iterator[HunkPlace]:
        """Yield the places from `low` on, from top to bottom, that match as strictly as the first."""
        best = Strictness.HEADING, Strictness.HEADING
        while True:
            below = self._first_below(chunk.anchors, low)
            place = self._first(chunk, below) if below else None
            if not below or not place or (below.level, place.level) > best:
                return
            yield place
            if not chunk.anchors and not chunk.old:
                return
            best = below.level, place.level
            low = place.start + 1 if chunk.old else below.after

    def _first_below(self, anchors: tuple[bytes, ...], low: int) -> "_BelowAnchor | None":
        below = _BelowAnchor(low, low, Strictness.EXACT)
        for anchor in anchors:
            tries = ((self.hay.find([anchor], level, below.after), level) for level in (*_LEVELS, Strictness.HEADING))
            line, level = next((found for found in tries if found[0] >= 0), (-1, Strictness.EXACT))
            if line < 0:
                return None
            below = _BelowAnchor(line, line + 1, max(level, below.level))
        return below

    def _first(self, chunk: Chunk, below: "_BelowAnchor") -> HunkPlace | None:
        if not chunk.old:
            return HunkPlace(chunk, below.after if chunk.anchors else self.size, Strictness.EXACT)
        for variant in _variants(chunk):
            for level in self._levels_that_match(variant):
                start = self.hay.find(variant.old, level, below.line)
                if start >= 0:
                    return HunkPlace(variant, start, level)
        return None

    # Levels of strictness.

    def _levels_that_match(self, chunk: Chunk) -> Iterator[Strictness]:
        """Yield the levels at which the old lines may be in the file."""
        old = chunk.old
        for level in _levels(chunk):
            # If the loosest level finds nothing, no stricter one will: most patches that fail, fail here.
            if level is Strictness.TRAILING and self.hay.find(old, Strictness.FOLDED) < 0:
                return
            yield level

    # Faults for a chunk with no place, or with several.

    def _missing(self, chunk: Chunk, low: int) -> HunkNotFound | HunkApplied:
        """Return the fault for a chunk without a place: an anchor or its lines are missing, or it was applied."""
        after = low
        for index, anchor in enumerate(chunk.anchors):
            below = self._first_below((anchor,), after)
            if below is None:
                return self._explain(chunk, "context", chunk.anchors[index : index + 1], low)
            after = below.after
        if _is_distinctive(chunk):
            for level in (Strictness.EXACT, Strictness.ENDS):
                start = self.hay.find(chunk.new, level, low)
                if start >= 0:
                    return HunkApplied(self.path, chunk.number, start + 1)
        return self._not_found(chunk, low)

    def _not_found(self, chunk: Chunk, low: int) -> HunkNotFound:
        return self._explain(chunk, "end" if chunk.to_end else "lines", tuple(chunk.old), low)

    def _explain(self, chunk: Chunk, part: str, expected: tuple[bytes, ...], low: int) -> HunkNotFound:
        """Return the fault with the place in the wrong order, or else the most similar place."""
        fault = HunkNotFound(self.path, chunk.number, part, _text(b"\n".join(expected)))
        for variant in _variants(chunk) if part != "context" else ():
            start = self.hay.find(variant.old, Strictness.ENDS)
            if start >= 0:
                fault.line, fault.difference = start + 1, "end" if part == "end" and start >= low else "order"
                return fault
        place = nearest(self.file.given, b"\n".join(expected), limits=self.limits)
        if place:
            fault.line, fault.difference = place.line, place.difference
            fault.wanted, fault.found = _text(place.wanted), _text(place.found)
        return fault

    def _not_unique(self, chunk: Chunk, starts: list[int]) -> HunkNotUnique:
        expected = chunk.old or list(chunk.anchors)
        return HunkNotUnique(self.path, chunk.number, _text(b"\n".join(expected)), [start + 1 for start in starts])


def _levels(chunk: Chunk) -> Iterator[Strictness]:
    """Yield the levels at which the old and new lines differ: a change of spaces needs a level that sees spaces."""
    old, new = chunk.old, chunk.new
    for level in _LEVELS:
        if level is Strictness.EXACT or old == new or not same(level, old, new):
            yield level


def _variants(chunk: Chunk) -> Iterator[Chunk]:
    """Yield the chunk, then the chunk without its padding."""
    yield chunk
    if chunk.padding:
        yield replace(chunk, lines=chunk.lines[: -chunk.padding], padding=0)


def _is_distinctive(chunk: Chunk) -> bool:
    """Return whether the new lines prove that the chunk was applied: more than a brace or a blank line."""
    if any(line[0] == ADDED and _WORD.search(line, 1) for line in chunk.lines):
        return True
    before, after = chunk.margins
    removes = any(line[0] == REMOVED for line in chunk.lines)
    return bool(before and after and removes and sum(bool(_WORD.search(line)) for line in chunk.new) > 1)


def _ends_file(chunk: Chunk) -> bool:
    """Return whether the chunk has context above and none below: so a diff shows that the file ends there."""
    before, after = chunk.margins
    return bool(before) and not after


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
