"""Parses a notebook into cells, each with its place in the text."""

import re
from functools import cached_property
from json import JSONDecodeError
from typing import Any, NamedTuple

from handrail.model.notebook_faults import BadNotebook, CellNotFound, CellNotUnique
from handrail.ops.notebook.json_spans import Spot, Spots, scan_items, scan_members, skip

_BOM = "\ufeff"
_ID = re.compile(r"""[^\s"'<>&]{1,64}""")
_CELLS = scan_items()
_NOTEBOOK = scan_members({"cells": _CELLS, "worksheets": scan_items(scan_members({"cells": _CELLS}))})


class Cell(NamedTuple):
    """Holds one cell: its number, its place and the array that it is in."""

    number: int
    """Counted from 0 over the whole notebook."""
    spot: Spot
    row: Spots
    within: int
    """Counted from 0 in its array."""

    @property
    def members(self) -> dict[str, Any]:
        members: dict[str, Any] = self.spot.value
        return members

    @property
    def kind(self) -> str:
        return str(self.members.get("cell_type", ""))

    @property
    def id(self) -> str | None:
        """The id, if it is one that an answer can show."""
        found = self.members.get("id")
        return found if isinstance(found, str) and _ID.fullmatch(found) and found.isprintable() else None

    @property
    def source_name(self) -> str:
        """The member that holds the source: before format 4, the one of code is `input`."""
        return "input" if "input" in self.members and "source" not in self.members else "source"

    @property
    def source(self) -> str | None:
        """The source as text; None if it has another type."""
        return joined(self.members.get(self.source_name, ""))


class Notebook:
    """Holds the text of a notebook and its cells."""

    def __init__(self, path: str, data: bytes, text: str, top: Spots, rows: list[Spots]) -> None:
        self.path, self.data, self.text, self.top, self.rows = path, data, text, top, rows
        spots = [(row, number, spot) for row in rows for number, spot in enumerate(row.spots)]
        self.cells = [Cell(number, spot, row, within) for number, (row, within, spot) in enumerate(spots)]

    @property
    def format(self) -> tuple[int, int]:
        """The version of the form; (4, 0) if the file does not say it."""
        return _whole(self.top.get("nbformat"), 4), _whole(self.top.get("nbformat_minor"), 0)

    @property
    def language(self) -> str:
        about = self.top.get("metadata")
        for outer, inner in (("language_info", "name"), ("kernelspec", "language")):
            part = about.get(outer) if isinstance(about, dict) else None
            if isinstance(part, dict) and isinstance(part.get(inner), str):
                return str(part[inner]).encode(errors="replace").decode()
        return "python"

    @cached_property
    def _by_id(self) -> dict[str, list[Cell]]:
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            if (name := cell.id) is not None:
                found.setdefault(name, []).append(cell)
        return found

    def has_id(self, name: str) -> bool:
        """Return whether a cell has this id."""
        return name in self._by_id

    def name(self, cell: Cell) -> str:
        """Return the name of a cell: its id, or `cell-N` if it has none of its own."""
        own = cell.id
        return own if own and len(self._by_id[own]) == 1 else f"cell-{cell.number}"

    def find(self, name: str) -> Cell:
        """Return the cell with an id or a name. Raises CellNotFound and CellNotUnique."""
        same = self._by_id.get(name, [])
        if len(same) > 1:
            raise CellNotUnique(self.path, name, [f"cell-{cell.number}" for cell in same])
        if same:
            return same[0]
        number = _whole(name.removeprefix("cell-"), -1) if name.startswith("cell-") else -1
        if 0 <= number < len(self.cells):
            return self.cells[number]
        raise CellNotFound(self.path, name, [self.name(cell) for cell in self.cells])

    def spliced(self, start: int, end: int, new: str) -> bytes:
        """Return the bytes of the file with a part of the text replaced; all others are copied, not encoded again."""
        if self.text.isascii():
            return b"".join((self.data[:start], new.encode(), self.data[end:]))
        return b"".join((self.text[:start].encode(), new.encode(), self.text[end:].encode()))


def joined(value: Any) -> str | None:
    """Return a text that a notebook holds whole or as a list of lines; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "".join(value)
    return None


def parse(path: str, data: bytes) -> Notebook:
    """Return the notebook in the bytes of a file. Raises BadNotebook."""
    try:
        text = data.decode()
        top, end = _NOTEBOOK(text, skip(text, len(_BOM) if text.startswith(_BOM) else 0))
        if skip(text, end) != len(text):
            raise JSONDecodeError("there is text after the end", text, end)
    except UnicodeDecodeError as error:
        raise BadNotebook(path, "not_text", f"at byte {error.start}") from None
    except JSONDecodeError as error:
        raise BadNotebook(path, "not_json", f"line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadNotebook(path, "too_deep") from None
    return Notebook(path, data, text, top, _rows(path, top))


def _rows(path: str, top: Any) -> list[Spots]:
    """Return the arrays of cells: one in format 4, one for each worksheet before."""
    if not isinstance(top, Spots):
        raise BadNotebook(path, "shape", "the whole is not an object")
    sheets = top.get("worksheets")
    found = [top.get("cells")]
    if found == [None] and isinstance(sheets, Spots):
        found = [each.value.get("cells") if isinstance(each.value, Spots) else None for each in sheets.spots]
    rows = [row for row in found if isinstance(row, Spots)]
    if len(rows) < len(found) or not rows:
        raise BadNotebook(path, "shape", "`cells` is not an array")
    number = 0
    for row in rows:
        for spot in row.spots:
            if not isinstance(spot.value, dict):
                raise BadNotebook(path, "shape", f"cell {number} is not an object")
            number += 1
    return rows


def _whole(value: Any, otherwise: int) -> int:
    return (
        int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else otherwise
    )
