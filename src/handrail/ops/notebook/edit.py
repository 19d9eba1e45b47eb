"""Replaces, inserts and deletes single cells of a notebook; every byte outside the change stays as it was."""

import hashlib
import json
import re
from functools import cached_property
from typing import Any, NamedTuple

from handrail.ops.notebook.json_spans import Spots, scan_items, scan_members, skip
from handrail.ops.notebook.notebook import Cell, Notebook

_WITH_IDS = (4, 5)
"""The first version of the form in which every cell has an id."""
_CODE_ONLY = ("execution_count", "outputs", "prompt_number", "collapsed", "language")
_ESCAPE = re.compile(r"\\u(?!00[0-7])")
_LIST = scan_items()


class Edited(NamedTuple):
    """Holds the new text of a notebook and the cell that was changed."""

    data: bytes
    name: str
    kind: str
    old_source: str | None


def replace(book: Notebook, cell: Cell, source: str, kind: str | None) -> Edited:
    """Replace the source of a cell. Outputs, id and metadata stay; outputs go only if code becomes text."""
    turned = kind is not None and kind != cell.kind
    made = _turned(book, cell, source, kind or "") if turned else _resourced(book, cell, source)
    return Edited(made, book.name(cell), kind or cell.kind, cell.source)


def insert(book: Notebook, after: Cell | None, source: str, kind: str) -> Edited:
    """Insert a cell after another one, or as the first."""
    row, number = (after.row, after.number + 1) if after else (book.rows[0], 0)
    style, depth = _Style(book), 2 if book.format[0] >= 4 else 4
    new_id = _new_id(book, number) if book.format >= _WITH_IDS else None
    written = style.dumped(_new_cell(book, source, kind, new_id), depth)
    if not row.spots:
        whole = f"[{style.line(depth)}{written}{style.line(depth - 1)}]"
        data = book.spliced(row.start, row.end, whole)
    elif after is None:
        first = row.spots[0].start
        data = book.spliced(first, first, written + style.comma(row))
    else:
        data = book.spliced(after.spot.end, after.spot.end, style.comma(row) + written)
    return Edited(data, new_id or f"cell-{number}", kind, None)


def delete(book: Notebook, cell: Cell) -> Edited:
    """Delete a cell with the comma that belongs to it."""
    spots, at = cell.row.spots, cell.within
    if at:
        data = book.spliced(spots[at - 1].end, spots[at].end, "")
    elif len(spots) > 1:
        data = book.spliced(spots[0].start, spots[1].start, "")
    else:
        data = book.spliced(cell.row.start, cell.row.end, "[]")
    return Edited(data, book.name(cell), cell.kind, cell.source)


def _resourced(book: Notebook, cell: Cell, source: str) -> bytes:
    text, style = book.text, _Style(book)
    if cell.source == source:
        return book.data
    members = _members(book, cell)
    found = members.member(cell.source_name)
    if found is None:
        return _rebuilt(book, cell, members, {"source": style.source(source, None, "", "")})
    before = _space_before(text, found.name_start)
    new = style.source(source, found.value, text[found.start : found.end], before)
    return book.spliced(found.start, found.end, new)


def _turned(book: Notebook, cell: Cell, source: str, kind: str) -> bytes:
    """Return the bytes with a cell of another type: code has outputs, other cells have none."""
    style, members = _Style(book), _members(book, cell)
    old, new = cell.source_name, "input" if kind == "code" and book.format[0] < 4 else "source"
    made = _new_cell(book, source, kind, None)
    changes: dict[str, str | None] = {} if kind == "code" else dict.fromkeys(_CODE_ONLY)
    if kind == "code":
        changes |= {name: style.dumped(made[name], 3) for name in made if name not in ("metadata", new)}
    spot = members.member(old)
    before = _space_before(book.text, spot.name_start) if spot else ""
    given = book.text[spot.start : spot.end] if spot else ""
    changes |= {old: None, new: style.source(source, spot.value if spot else None, given, before)}
    changes["cell_type"] = json.dumps(kind)
    return _rebuilt(book, cell, members, changes)


def _rebuilt(book: Notebook, cell: Cell, members: Spots, changes: dict[str, str | None]) -> bytes:
    """Return the bytes with members of a cell changed, added, or left out (None); the others stay byte for byte."""
    text, style, spots = book.text, _Style(book), members.spots
    first = text[members.start + 1 : spots[0].name_start] if spots else ""
    last = text[spots[-1].end : members.end - 1] if spots else ""
    between = style.comma(members)
    parts, left = [], dict(changes)
    for spot in spots:
        if spot.name not in changes:
            parts.append(text[spot.name_start : spot.end])
        elif (new := left.pop(spot.name, None)) is not None:
            parts.append(text[spot.name_start : spot.start] + new)
    parts += [f"{json.dumps(name)}{style.colon}{new}" for name, new in left.items() if new is not None]
    return book.spliced(cell.spot.start, cell.spot.end, f"{{{first}{between.join(parts)}{last}}}")


def _members(book: Notebook, cell: Cell) -> Spots:
    members: Spots = scan_members()(book.text, cell.spot.start)[0]
    return members


def _space_before(text: str, at: int) -> str:
    """Return the white space before a place."""
    start = at
    while start and text[start - 1] in " \t\r\n":
        start -= 1
    return text[start:at]


def _new_id(book: Notebook, number: int) -> str:
    """Return an id that no cell has; the same for the same notebook, so that a call can be repeated."""
    attempt = 0
    while True:
        seed = f"{number} {attempt} {len(book.text)} {len(book.cells)}".encode()
        made = hashlib.sha256(seed + book.text[-4096:].encode()).hexdigest()[:8]
        if not book.has_id(made):
            return made
        attempt += 1


def _new_cell(book: Notebook, source: str, kind: str, new_id: str | None) -> dict[str, Any]:
    """Return a cell as the version of the notebook has it, names in the order of Jupyter."""
    lines = lines_of(source)
    if book.format[0] < 4:
        if kind == "code":
            told = {"cell_type": kind, "collapsed": False, "input": lines, "language": book.language}
            return told | {"metadata": {}, "outputs": []}
        return {"cell_type": kind, "metadata": {}, "source": lines}
    named = {"id": new_id} if new_id else {}
    if kind == "code":
        count: dict[str, Any] = {"cell_type": kind, "execution_count": None}
        return count | named | {"metadata": {}, "outputs": [], "source": lines}
    return {"cell_type": kind} | named | {"metadata": {}, "source": lines}


def lines_of(source: str) -> list[str]:
    """Return a source as notebooks store it: a list of lines, each with its line end."""
    lines = re.split(r"(?<=\n)", source)
    return lines if lines[-1] else lines[:-1]


class _Style:
    """Knows how a notebook is written: indentation, separators, and whether it escapes what is not ASCII."""

    def __init__(self, book: Notebook) -> None:
        self._text, self._top = book.text, book.top

    @cached_property
    def indent(self) -> str | None:
        """The white space of one level after a line end; None if the file has no lines."""
        first = self._text[self._top.start + 1 : skip(self._text, self._top.start + 1)]
        return first.rpartition("\n")[2] if "\n" in first else None

    @cached_property
    def end(self) -> str:
        """The line end between values."""
        return "\r\n" if self._text[self._top.start + 1 : self._top.start + 3] == "\r\n" else "\n"

    @cached_property
    def colon(self) -> str:
        """Return the text between a name and its value."""
        if not self._top.spots:
            return ": "
        spot = self._top.spots[0]
        return re.sub(r'^"(?:[^"\\]|\\.)*"', "", self._text[spot.name_start : spot.start])

    @cached_property
    def escapes(self) -> bool:
        """True if the file writes characters that are not ASCII as escapes."""
        text = self._text
        return text.isascii() and any(_is_escape(text, each.start()) for each in _ESCAPE.finditer(text))

    def comma(self, spots: Spots) -> str:
        """Return the text between two values of an array or object."""
        known = spots if len(spots.spots) > 1 else self._top
        if len(known.spots) < 2:
            return ","
        first, second = known.spots[:2]
        return self._text[first.end : second.start if second.name_start < 0 else second.name_start]

    @property
    def _mark(self) -> str:
        """The comma at the end of a line, with the space that some writers put behind it."""
        return self.comma(self._top).partition("\n")[0].rstrip("\r")

    def line(self, depth: int) -> str:
        """Return what begins a line at a depth; nothing if the file has no lines."""
        return "" if self.indent is None else self.end + self.indent * depth

    def dumped(self, value: Any, depth: int) -> str:
        """Return a value as JSON in the style of the file, its inner lines indented to a depth."""
        separators = (self.comma(self._top) if self.indent is None else ",", self.colon)
        plain = json.dumps(value, indent=self.indent, separators=separators, ensure_ascii=False)
        made = plain
        if not _is_plain(plain) and self.escapes:
            made = json.dumps(value, indent=self.indent, separators=separators)
        return made if self.indent is None else made.replace("\n", self.line(depth))

    def _quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=not _is_plain(text) and self.escapes)

    def source(self, source: str, old: Any, written: str, before: str) -> str:
        """Return a source in the form of the old one: one text, or a list of lines with the same white space.

        `written` is the old source as it stands in the file, `before` the white space before its name.
        """
        if isinstance(old, str):
            return self._quoted(source)
        lines = [self._quoted(line) for line in lines_of(source)]
        if not lines:
            return "[]"
        if isinstance(old, list) and old:
            first, comma, last = self._around(written)
        elif self.indent is not None and "\n" in before:
            first, comma, last = before + self.indent, f"{self._mark}{before}{self.indent}", before
        else:
            first, comma, last = "", self.comma(self._top) if self.indent is None else ", ", ""
        return f"[{first}{comma.join(lines)}{last}]"

    def _around(self, written: str) -> tuple[str, str, str]:
        """Return the text before, between and after the strings of a list."""
        items = _LIST(written, 0)[0]
        first = written[1 : items.spots[0].start]
        comma = f"{self._mark}{first}" if first else self.comma(self._top) if self.indent is None else ", "
        return first, self._between(written, items) or comma, written[items.spots[-1].end : -1]

    @staticmethod
    def _between(written: str, items: Spots) -> str:
        return written[items.spots[0].end : items.spots[1].start] if len(items.spots) > 1 else ""


def _is_plain(text: str) -> bool:
    """Return whether a text has no character that some writers of JSON escape and others do not."""
    return text.isascii() and "\x7f" not in text


def _is_escape(text: str, at: int) -> bool:
    """Return whether the backslash at a place begins an escape: an even number of backslashes is before it."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 0
