"""Puts the chunks into a file's bytes; every byte that no chunk changes stays."""

from dataclasses import replace

from handrail.model.faults import HunkNotFound
from handrail.model.limits import Limits
from handrail.ops.patch.file_lines import BOM, Lines, carriages, has_lone_cr, with_marked_cr, without_marked_cr
from handrail.ops.patch.indent import Indentation
from handrail.ops.patch.line_search import Strictness
from handrail.ops.patch.model import ADDED, CONTEXT, REMOVED, Chunk
from handrail.ops.patch.placement import HunkPlace, place_all


def patched(path: str, data: bytes, chunks: tuple[Chunk, ...], limits: Limits) -> bytes:
    """Return the bytes of a file after all chunks; a lone CR ends a line if the chunks do not fit otherwise.

    Raises the faults of `place_all`.
    """
    lone = has_lone_cr(data)
    if not (lone and b"\n" not in data) or any(b"\r" in line for chunk in chunks for line in chunk.lines):
        try:
            return _spliced(path, data, chunks, limits)
        except HunkNotFound:
            if not lone:
                raise
    split = tuple(replace(chunk, lines=_split_at_cr(chunk.lines)) for chunk in chunks)
    return without_marked_cr(_spliced(path, with_marked_cr(data), split, limits))


def _split_at_cr(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return the lines of a chunk, also split at their CRs; each part has the sign of its line."""
    return tuple(line[:1] + part for line in lines for part in line[1:].removesuffix(b"\r").split(b"\r"))


def _spliced(path: str, data: bytes, chunks: tuple[Chunk, ...], limits: Limits) -> bytes:
    patch_lines = [line for chunk in chunks for line in chunk.lines]
    literal = any(line.endswith(b"\r") for line in patch_lines)
    file = Lines.of(data, keep_bom=any(line.startswith(BOM, 1) for line in patch_lines), even_ends=not literal)
    out: list[bytes] = []
    done, closed, opened = 0, file.closed, False
    for place in place_all(path, file, chunks, limits):
        start, end = place.changed()
        out += file.lines[done:start]
        out += _changed_lines(file, place, literal=literal)
        done = end
        if place.start + len(place.chunk.old) == len(file.lines):
            closed = _closed_after(file, place.chunk)
            opened = place.chunk.new_open and not literal
    out += file.lines[done:]
    implied_cr = carriages(out[-1]) if opened and out else file.implied_cr
    return Lines(out, closed, file.bom, implied_cr).data()


def _changed_lines(file: Lines, place: HunkPlace, *, literal: bool) -> list[bytes]:
    """Return the lines from the first change to the last.

    Context lines keep the bytes of the file. Added lines get the line ends and the indentation of the file.
    """
    chunk, index, out = place.chunk, place.start, []
    before, after = chunk.margins
    old = file.lines[index : index + len(chunk.old)]
    indentation = Indentation(zip(chunk.old, old, strict=True)) if place.level >= Strictness.OUTER else None
    for position, signed in enumerate(chunk.lines):
        sign, line = signed[0], signed[1:]
        inside = before <= position < len(chunk.lines) - after
        if sign != ADDED:
            if indentation:
                indentation.learn(line, file.lines[index])
            if sign == CONTEXT and inside:
                out.append(file.lines[index])
            index += 1
        elif literal and place.level is Strictness.EXACT:
            out.append(line)
        else:
            line = line.rstrip(b"\r") + file.carriage(index)
            out.append(indentation.fit(line) if indentation else line)
    return out


def _closed_after(file: Lines, chunk: Chunk) -> bool:
    """Return whether the file ends in a newline after a chunk at its end; the chunk may change that."""
    if chunk.marked:
        return not chunk.new_open
    if chunk.lines[-1][0] == REMOVED:
        remaining = [line[0] for line in chunk.lines if line[0] != REMOVED]
        return file.closed or remaining[-1:] != [ADDED]
    return file.closed
