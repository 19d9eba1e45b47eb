"""Words the faults of the tools that work on the history."""

from handrail.model.undo_faults import UndoConflicted, UndoFailed
from handrail.tools.messages import Facts, Message, Words


def _conflict(facts: Facts) -> str:
    names = ", ".join(facts["names"])
    return f"Nothing was changed: a later change of {names} would be lost\n{facts['diff']}".rstrip()


UNDO: Words = {
    UndoFailed: Message("undo_failed", "Nothing was changed: {why}", "Call history to see the entries and marks"),
    UndoConflicted: Message("undo_conflict", _conflict, "Undo the later changes first, or edit the files"),
}
