"""Declares the faults of reading and editing notebooks."""

from handrail.model.faults import PathFault


class BadNotebook(PathFault):
    """The file is no notebook that Handrail can read."""

    why: str
    """One of: name (it does not end in .ipynb), not_text, not_json, too_deep, shape."""
    detail: str = ""


class CellNotFound(PathFault):
    """The notebook has no such cell."""

    cell: str
    known: list[str]
    """The names of the cells."""


class CellNotUnique(PathFault):
    """Several cells have this id."""

    cell: str
    known: list[str]
    """Names that are unique."""
