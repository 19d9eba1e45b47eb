"""Where the chunks of one file go.

Chunks follow each other down the file. One that carries a line number goes to the place nearest to it. One
that doesn't goes to the first place from the current position; before any position is known all places are
equally near, so there must be only one, or only one that leaves room for the chunks that follow.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from handrail.model.faults import HunkApplied, HunkNotFound, HunkNotUnique, TooMuchSearch
from handrail.model.limits import Limits
from handrail.ops.patch.file_lines import Lines
from handrail.ops.patch.line_search import Haystack, OutOfEffort, Strictness, same
from handrail.ops.patch.model import ADDED, REMOVED, Chunk
from handrail.ops.text.nearest import nearest

_LADDER = (Strictness.EXACT, Strictness.ENDS, Strictness.TRAILING, Strictness.OUTER, Strictness.FOLDED)
_WORD = re.compile(rb"[A-Za-z0-9\x80-\xff]")


@dataclass(frozen=True, slots=True)
class HunkPlace:
    chunk: Chunk
    """Without the padding that turned out to be none of the file's."""
    start: int
    rung: Strictness

    def changed(self) -> tuple[int, int]:
        """The span of old lines from the first change to the last."""
        before, after = self.chunk.margins
        return self.start + before, self.start + len(self.chunk.old) - after

    def floor(self) -> int:
        """Where the next chunk may start: context may be shared, changes may not."""
        changes = any(line[0] in (ADDED, REMOVED) for line in self.chunk.lines)
        return self.changed()[1] if changes else self.start


def place_all(path: str, file: Lines, chunks: tuple[Chunk, ...], limits: Limits) -> list[HunkPlace]:
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


@dataclass(frozen=True, slots=True)
class _Below:
    """The line of the last anchor, which may be repeated as the first line of context; the line after it."""

    line: int
    after: int
    rung: Strictness


class _Placer:
    def __init__(self, path: str, file: Lines, chunks: tuple[Chunk, ...], limits: Limits) -> None:
        self.path, self.file, self.limits = path, file, limits
        self.chunks = chunks
        self.size = len(file.lines)

    @cached_property
    def hay(self) -> Haystack:
        """Most diffs fit where they say, and never need it."""
        wanted = (line for chunk in self.chunks for line in (*chunk.anchors, *chunk.old, *chunk.new))
        return Haystack(self.file.given, self.file.lines, wanted, self.limits.patch_search)

    def _stands(self, block: list[bytes], rung: Strictness, at: int) -> bool:
        if rung is Strictness.EXACT:
            return at >= 0 and self.file.lines[at : at + len(block)] == block
        return self.hay.stands(block, rung, at)

    def in_order(self, chunks: tuple[Chunk, ...], low: int | None = None) -> list[HunkPlace]:
        """`low` is the current position, None while there is none."""
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
            for rung in _rungs(variant):
                if start >= low and (not old or self._stands(old, rung, start)):
                    self._refuse_applied_newline(variant)
                    return HunkPlace(variant, start, rung)
        new = chunk.new
        if _telling(chunk) and self._stands(new, Strictness.ENDS, self.size - len(new)):
            raise HunkApplied(self.path, chunk.number, self.size - len(new) + 1)
        raise self._not_found(chunk, low)

    def _refuse_applied_newline(self, chunk: Chunk) -> None:
        """A chunk that only adds or takes the last newline leaves no other trace of having been applied."""
        said = chunk.marked and chunk.old_open == self.file.closed
        if said and chunk.old_open != chunk.new_open and chunk.old == chunk.new:
            raise HunkApplied(self.path, chunk.number, self.size)

    # A chunk with a line number.

    def _numbered(self, chunk: Chunk, low: int, at: int) -> HunkPlace:
        if not chunk.old:
            if low <= at <= self.size:
                return HunkPlace(chunk, at, Strictness.EXACT)
            raise HunkNotFound(self.path, chunk.number, "line" if at > self.size else "order", "", line=self.size)
        for variant in _variants(chunk):
            for rung in self._rungs_that_match(variant):
                self._refuse_applied(variant, rung, at)
                places = self._by_number(variant, rung, low, at)
                if len(places) > 1:
                    raise self._not_unique(variant, places)
                if places:
                    return HunkPlace(variant, places[0], rung)
        raise self._missing(chunk, low)

    def _by_number(self, chunk: Chunk, rung: Strictness, low: int, at: int) -> list[int]:
        old = chunk.old
        end = self.size - len(old)
        if _closes(chunk) and end >= low and self._stands(old, rung, end):
            return [end]
        if at >= low and self._stands(old, rung, at):
            return [at]
        return self.hay.nearest(old, rung, low, at)

    def _refuse_applied(self, chunk: Chunk, rung: Strictness, at: int) -> None:
        """Its result stands where it should go: another place that looks like its old lines is not meant."""
        if rung > Strictness.ENDS or self._stands(chunk.old, rung, at) or not _telling(chunk):
            return
        if self._stands(chunk.new, rung, at):
            raise HunkApplied(self.path, chunk.number, at + 1)

    # A chunk without one.

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
        """Whether the chunks that follow still find their places if this one went there."""
        try:
            self.in_order(rest, place.floor())
        except (HunkNotFound, HunkApplied):
            return False
        except HunkNotUnique:
            pass
        return True

    def _candidates(self, chunk: Chunk, low: int) -> Iterator[HunkPlace]:
        """Places from `low` on, top down, all as good as the first."""
        best = Strictness.HEADING, Strictness.HEADING
        while True:
            below = self._first_below(chunk.anchors, low)
            place = self._first(chunk, below) if below else None
            if not below or not place or (below.rung, place.rung) > best:
                return
            yield place
            if not chunk.anchors and not chunk.old:
                return
            best = below.rung, place.rung
            low = place.start + 1 if chunk.old else below.after

    def _first_below(self, anchors: tuple[bytes, ...], low: int) -> "_Below | None":
        below = _Below(low, low, Strictness.EXACT)
        for anchor in anchors:
            tries = ((self.hay.find([anchor], rung, below.after), rung) for rung in (*_LADDER, Strictness.HEADING))
            line, rung = next((found for found in tries if found[0] >= 0), (-1, Strictness.EXACT))
            if line < 0:
                return None
            below = _Below(line, line + 1, max(rung, below.rung))
        return below

    def _first(self, chunk: Chunk, below: "_Below") -> HunkPlace | None:
        if not chunk.old:
            return HunkPlace(chunk, below.after if chunk.anchors else self.size, Strictness.EXACT)
        for variant in _variants(chunk):
            for rung in self._rungs_that_match(variant):
                start = self.hay.find(variant.old, rung, below.line)
                if start >= 0:
                    return HunkPlace(variant, start, rung)
        return None

    # The ladder.

    def _rungs_that_match(self, chunk: Chunk) -> Iterator[Strictness]:
        old = chunk.old
        for rung in _rungs(chunk):
            # What the coarsest rung doesn't find no finer one will: most patches that fail, fail here.
            if rung is Strictness.TRAILING and self.hay.find(old, Strictness.FOLDED) < 0:
                return
            yield rung

    # What to say when there is no place, or more than one.

    def _missing(self, chunk: Chunk, low: int) -> HunkNotFound | HunkApplied:
        after = low
        for index, anchor in enumerate(chunk.anchors):
            below = self._first_below((anchor,), after)
            if below is None:
                return self._explain(chunk, "context", chunk.anchors[index : index + 1], low)
            after = below.after
        if _telling(chunk):
            for rung in (Strictness.EXACT, Strictness.ENDS):
                start = self.hay.find(chunk.new, rung, low)
                if start >= 0:
                    return HunkApplied(self.path, chunk.number, start + 1)
        return self._not_found(chunk, low)

    def _not_found(self, chunk: Chunk, low: int) -> HunkNotFound:
        return self._explain(chunk, "end" if chunk.to_end else "lines", tuple(chunk.old), low)

    def _explain(self, chunk: Chunk, part: str, expected: tuple[bytes, ...], low: int) -> HunkNotFound:
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


def _rungs(chunk: Chunk) -> Iterator[Strictness]:
    """The rungs on which it still changes something: a change of spaces is not looked for without spaces."""
    old, new = chunk.old, chunk.new
    for rung in _LADDER:
        if rung is Strictness.EXACT or old == new or not same(rung, old, new):
            yield rung


def _variants(chunk: Chunk) -> Iterator[Chunk]:
    yield chunk
    if chunk.padding:
        yield replace(chunk, lines=chunk.lines[: -chunk.padding], padding=0)


def _telling(chunk: Chunk) -> bool:
    """Its new lines are not just any brace or blank line: where they stand, it was applied."""
    if any(line[0] == ADDED and _WORD.search(line, 1) for line in chunk.lines):
        return True
    before, after = chunk.margins
    removes = any(line[0] == REMOVED for line in chunk.lines)
    return bool(before and after and removes and sum(bool(_WORD.search(line)) for line in chunk.new) > 1)


def _closes(chunk: Chunk) -> bool:
    """Context above and none below is how a diff shows that the file ends there."""
    before, after = chunk.margins
    return bool(before) and not after


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
