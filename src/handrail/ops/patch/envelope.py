"""Parses the `*** Begin Patch` envelope.

Text around the envelope (prose, a heredoc, a Markdown fence) is ignored. Spaces before a marker are allowed where the
line cannot be a context line: everywhere outside an Update, and inside it if an earlier marker had the same spaces.
"""

import re
from dataclasses import replace

from handrail.model.faults import BadPatch
from handrail.model.paths import quote, unquote
from handrail.ops.patch.chunks import Header, is_line, make_chunk, read_header
from handrail.ops.patch.model import Action, Chunk, FilePatch

_BEGIN, _END, _END_OF_FILE = b"*** Begin Patch", b"*** End Patch", b"*** End of File"
_SECTION = re.compile(rb"\s*\*\*\* (Add|Delete|Update) File:\s*(.*?)\s*$", re.DOTALL)
_MOVE = re.compile(rb"\s*\*\*\* Move to:\s*(.*?)\s*$", re.DOTALL)


def begins(line: bytes) -> bool:
    """Return whether an envelope begins at this line."""
    return line.strip() == _BEGIN


def opens_section(line: bytes) -> bool:
    """Return whether the section of a file begins at this line."""
    return bool(_SECTION.match(line))


def parse(lines: list[bytes]) -> list[FilePatch]:
    """Parse every envelope in the lines. Raises BadPatch."""
    patches: list[FilePatch] = []
    at = 0
    while at < len(lines):
        if begins(lines[at]):
            lines = _dedented(lines, at)
            reader = _EnvelopeReader(lines, at)
            patches += reader.sections()
            at = reader.at
        at += 1
    if not patches:
        raise BadPatch("no_sections")
    return patches


def parse_section(action: Action, path: str, lines: list[bytes], target: str = "") -> FilePatch:
    """Parse the lines of one section, which stand alone. `target` is the new name of a moved file. Raises BadPatch."""
    kind = {Action.CREATE: b"Add", Action.DELETE: b"Delete", Action.UPDATE: b"Update"}[action]
    move = [b"*** Move to: " + quote(unquote(target)).encode(errors="surrogateescape")] if target else []
    reader = _EnvelopeReader([_BEGIN, *move, *lines, _END], 0)
    found = reader.section(kind, unquote(path))
    if reader.at <= len(move) + len(lines):
        raise reader.bad("bad_line")
    return found


class _EnvelopeReader:
    """Reads one envelope; `at` is the index of the current line."""

    def __init__(self, lines: list[bytes], begin: int) -> None:
        self.lines, self.at = lines, begin + 1
        self.pads = {b"", _pad(lines[begin])}
        self.last = max((i for i, line in enumerate(lines) if line.strip() == _END), default=-1)

    def sections(self) -> list[FilePatch]:
        """Read the sections up to the end marker; `at` is then the index of that marker."""
        patches: list[FilePatch] = []
        while not self._at_end():
            line = self.lines[self.at]
            section = _SECTION.match(line)
            if section:
                self.pads.add(_pad(line))
                self.at += 1
                patches.append(self.section(section[1], unquote(_text(section[2]))))
            elif line.strip():
                raise self.bad("bad_header" if line.startswith(b"*") else "bad_line")
            else:
                self.at += 1
        return patches

    def _at_end(self) -> bool:
        if self.at >= len(self.lines):
            raise BadPatch("no_end", len(self.lines))
        return self.lines[self.at].strip() == _END

    def section(self, kind: bytes, path: str) -> FilePatch:
        """Read the lines of a section, whose header was read."""
        at = self.at
        if not path:
            raise BadPatch("no_file", at)
        if kind == b"Delete":
            return FilePatch(Action.DELETE, path, envelope=True)
        if kind == b"Add":
            body = self._added()
            chunks = (make_chunk(1, at, Header(), body),) if body else ()
            return FilePatch(Action.CREATE, path, chunks, envelope=True)
        return self._update(path, at)

    def _added(self) -> list[bytes]:
        """Read the lines of a new file; an empty line between two added lines lost its sign."""
        body: list[bytes] = []
        while self.at < len(self.lines) and (self._is_signed() or not self.lines[self.at].strip()):
            body.append(self.lines[self.at])
            self.at += 1
        while body and not body[-1].strip():
            body.pop()
        return [line if line.strip() else b"+" for line in body]

    def _is_signed(self) -> bool:
        return self.lines[self.at][:1] in (b"+", b"\\")

    def _update(self, path: str, at: int) -> FilePatch:
        target = path
        self._skip_blank()
        move = _MOVE.match(self.lines[self.at]) if self.at < len(self.lines) else None
        if move:
            target = unquote(_text(move[1]))
            self.at += 1
            if not target:
                raise BadPatch("no_file", self.at)
            self._skip_blank()
        chunks: list[Chunk] = []
        while not self._at_marker():
            chunks.append(self._chunk(len(chunks) + 1))
        if not chunks and not move:
            raise BadPatch("no_hunks", at, path)
        return FilePatch(Action.UPDATE, target, tuple(chunks), source=path if move else "", envelope=True)

    def _chunk(self, number: int) -> Chunk:
        header, anchors = self._headers()
        at, body = self.at, []
        while not self._at_marker() and not self._line_starts_with(b"@@") and not self._at_end_of_file():
            if not is_line(self.lines[self.at]):
                raise self.bad("bad_line")
            body.append(self.lines[self.at])
            self.at += 1
        chunk = make_chunk(number, at, header, body, anchors=anchors)
        if not self._at_end_of_file():
            return chunk
        self.at += 1
        self._skip_blank()
        return replace(chunk, to_end=True)

    def _headers(self) -> tuple[Header, tuple[bytes, ...]]:
        header, anchors = Header(), []
        while self._line_starts_with(b"@@"):
            header = read_header(self.lines[self.at])
            anchors += [header.anchor] if header.anchor else []
            self.at += 1
            after = self.at
            self._skip_blank()
            if not self._line_starts_with(b"@@"):
                self.at = after
        return header, tuple(anchors)

    def _skip_blank(self) -> None:
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1

    def _line_starts_with(self, start: bytes) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].startswith(start)

    def _at_end_of_file(self) -> bool:
        if self.at >= len(self.lines):
            return False
        line = self.lines[self.at]
        return line.strip() == _END_OF_FILE and _pad(line) in self.pads

    def _at_marker(self) -> bool:
        """Return whether a section or the patch ends at the current line."""
        if self.at >= len(self.lines):
            return True
        line = self.lines[self.at]
        if self.at == self.last:
            return True
        return _pad(line) in self.pads and (line.strip() == _END or opens_section(line))

    def bad(self, why: str) -> BadPatch:
        """Return the fault for the current line."""
        return BadPatch(why, self.at + 1, _text(self.lines[self.at]))


def _pad(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


def _dedented(lines: list[bytes], begin: int) -> list[bytes]:
    """Remove the indentation of an envelope that is indented as a whole."""
    pad = _pad(lines[begin])
    end = next((i for i in range(begin, len(lines)) if lines[i].strip() == _END), begin)
    inside = lines[begin : end + 1]
    if not pad or not all(line.startswith(pad) or not line.strip() for line in inside):
        return lines
    return lines[:begin] + [line.removeprefix(pad) for line in inside] + lines[end + 1 :]


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
