"""Finds the places of the chunks in one file.

Chunks follow each other from top to bottom. A chunk with a line number goes to that line. If its lines are not there,
or if it has no number, only one place may fit: one that leaves room for the chunks before and after it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from handrail.model.faults import HunkApplied, HunkNotFound, HunkNotUnique, TooMuchSearch
from handrail.model.limits import Limits
from handrail.ops.patch.anchors import AnchorFinder, AnchorScope, merged
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


class _FoundPlace(NamedTuple):
    """Holds the first place of a chunk, and the spans of lines where the chunk may begin; none if only there."""

    place: HunkPlace
    spans: list[tuple[int, int]]

    @property
    def reach(self) -> int:
        """The number of lines from the start of the chunk to where the next chunk may start."""
        return self.place.floor() - self.place.start


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

    @cached_property
    def anchors(self) -> AnchorFinder:
        return AnchorFinder(self.file.lines, self.hay)

    def _matches_at(self, block: list[bytes], level: Strictness, at: int) -> bool:
        if level is Strictness.EXACT:
            return at >= 0 and self.file.lines[at : at + len(block)] == block
        return self.hay.matches_at(block, level, at)

    def in_order(self, chunks: tuple[Chunk, ...]) -> list[HunkPlace]:
        """Place the chunks one after the other, each at its first place; refuse those with another."""
        found: list[_FoundPlace] = []
        low = drift = 0
        for chunk in chunks:
            try:
                if chunk.to_end:
                    each = _FoundPlace(self._at_end(chunk, low), [])
                elif chunk.start is not None:
                    each = _FoundPlace(self._numbered(chunk, low, min(chunk.start + drift, self.size + 1)), [])
                    drift = each.place.start - chunk.start
                else:
                    each = self._following(chunk, low)
            except OutOfEffort:
                raise TooMuchSearch(self.path, chunk.number) from None
            low = each.place.floor()
            found.append(each)
        self._refuse_several(found)
        return [each.place for each in found]

    def _refuse_several(self, found: list[_FoundPlace]) -> None:
        """Raise HunkNotUnique for the first chunk that could also go further down, with the later chunks below it."""
        ceiling, fault = self.size + 1, None
        for each in reversed(found):
            chunk, start, level = each.place
            try:
                last = max(self._last(chunk.old, level, each.spans, start, ceiling - each.reach), start)
                starts = islice(self._starts(chunk.old, level, each.spans, start), self.limits.places)
                if last > start and not self._all_alike(chunk, level, few := list(starts), last):
                    fault = self._not_unique(chunk, few)
            except OutOfEffort:
                raise TooMuchSearch(self.path, chunk.number) from None
            ceiling = last
        if fault:
            raise fault

    def _all_alike(self, chunk: Chunk, level: Strictness, starts: list[int], last: int) -> bool:
        """Return whether the file is the same after the chunk at any of the places, as in a run of equal lines."""
        if level is not Strictness.EXACT or last > starts[-1] or b"\r" in self.file.given:
            return False
        first, lines, size = starts[0], self.file.lines, len(chunk.old)
        return all(
            chunk.new + lines[first + size : start + size] == lines[first:start] + chunk.new
            for start in starts
            if start <= last
        )

    def _starts(self, block: list[bytes], level: Strictness, spans: list[tuple[int, int]], low: int) -> Iterator[int]:
        """Yield the places in the spans, from `low` on."""
        for first, end in spans:
            at = max(first, low)
            while at < end:
                at = self.hay.find(block, level, at, end - 1) if block else at
                if at < 0:
                    break
                yield at
                at += 1

    def _last(self, block: list[bytes], level: Strictness, spans: list[tuple[int, int]], low: int, high: int) -> int:
        """Return the last place in the spans, from `low` to `high`; -1 if there is none."""
        for first, end in reversed(spans):
            start, stop = max(first, low), min(end - 1, high)
            if start <= stop:
                found = self.hay.find_last(block, level, start, stop) if block else stop
                if found >= 0:
                    return found
        return -1

    # A chunk that ends where the file ends.

    def _at_end(self, chunk: Chunk, low: int) -> HunkPlace:
        scopes = self.anchors.below(chunk.anchors) if chunk.anchors else [AnchorScope(0, 0, self.size)]
        if not scopes:
            raise self._missing(chunk, low)
        low = max(low, scopes[0].line if chunk.old else scopes[0].after)
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
        """Return the place at the line number; else the end, if the chunk shows it; else all other places."""
        old = chunk.old
        end = self.size - len(old)
        places = [at] if at >= low and self._matches_at(old, level, at) else []
        if _ends_file(chunk) and end >= low and end != at and self._matches_at(old, level, end):
            places.append(end)
        if not places:
            places = list(islice(self._starts(old, level, [(low, self.size)], low), self.limits.places))
        last = self._last(old, level, [(low, self.size)], low, self.size) if len(places) > 1 else -1
        return places[:1] if places and self._all_alike(chunk, level, places, last) else places

    def _refuse_applied(self, chunk: Chunk, level: Strictness, at: int) -> None:
        """Raise HunkApplied if the new lines are already at `at`: another place with the old lines would be wrong."""
        if level > Strictness.ENDS or self._matches_at(chunk.old, level, at) or not _is_distinctive(chunk):
            return
        if self._matches_at(chunk.new, level, at):
            raise HunkApplied(self.path, chunk.number, at + 1)

    # A chunk without a line number.

    def _following(self, chunk: Chunk, low: int) -> _FoundPlace:
        """Return the first place from `low` on, inside the scopes of the anchors if the chunk fits there at all."""
        scopes = self.anchors.below(chunk.anchors) if chunk.anchors else [AnchorScope(0, 0, self.size)]
        if scopes and not chunk.old:
            spans = (
                [(scope.after, scope.after + 1) for scope in scopes] if chunk.anchors else [(self.size, self.size + 1)]
            )
            for start in self._starts([], Strictness.EXACT, spans, low):
                return _FoundPlace(HunkPlace(chunk, start, Strictness.EXACT), spans)
        for variant in _variants(chunk) if scopes and chunk.old else ():
            for level in self._levels_that_match(variant):
                spans = merged(scopes)
                if next(self._starts(variant.old, level, spans, 0), None) is None:
                    spans = [(scopes[0].line, self.size)]
                for start in self._starts(variant.old, level, spans, low):
                    return _FoundPlace(HunkPlace(variant, start, level), spans)
        raise self._missing(chunk, low)

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
        for count in range(1, len(chunk.anchors) + 1):
            if not self.anchors.below(chunk.anchors[:count]):
                return self._explain(chunk, "context", chunk.anchors[count - 1 : count], low)
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
                fault.found = _text(b"".join(self.file.lines[start : start + 1]))
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
