"""Declares the faults of the tools that work on the history."""

from handrail.model.faults import Fault


class UndoFailed(Fault):
    """There is nothing to undo, or the entry, mark or path is unknown."""

    why: str


class UndoConflicted(Fault):
    """Files changed since, so that they cannot be restored; nothing was changed."""

    names: list[str]
    diff: str
    """What others changed in the files since."""
