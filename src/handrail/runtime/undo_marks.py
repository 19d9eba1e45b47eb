"""Sets marks in the history, such as the begin of a turn, and finds everything that has changed since a mark.

A mark is an entry of the journal without files, so it is ordered among the changes of all sessions.
"""

from typing import NamedTuple

from handrail.errors import UndoError, did_you_mean
from handrail.kernel.journal.journal import Damage, Journal, JournalEntry, Origin, with_amendments
from handrail.ops.text.display import visible

MARK = "mark"
_LONGEST = 200


class Mark(NamedTuple):
    """Names a point in the history. All entries with a larger number came later."""

    n: int
    name: str
    time: float
    session: str


def checked_name(name: str) -> str:
    """Return the name of a mark without blanks around it. Raises UndoError for a name that no line can show."""
    plain = name.strip()
    if not plain or len(plain) > _LONGEST or visible(plain) != plain or {*"\t\n"} & {*plain}:
        raise UndoError(f"a mark needs a name of 1 to {_LONGEST} visible characters, on one line")
    return plain


def mark_origin(name: str, session: str) -> Origin:
    """Return the origin of a mark, for the journal."""
    return Origin(MARK, session, about=name)


def marks(journal: Journal) -> list[Mark]:
    """Return all marks, the newest first."""
    found = [each for each in journal.backwards() if isinstance(each, JournalEntry) and each.origin.kind == MARK]
    return [Mark(each.n, each.origin.about, each.time, each.origin.session) for each in found]


def find_mark(journal: Journal, name: str) -> Mark:
    """Return the newest mark with a name. Raises UndoError if there is none."""
    known = marks(journal)
    for each in known:
        if each.name == name.strip():
            return each
    raise UndoError(f"unknown mark {visible(name)}{did_you_mean(name, [each.name for each in known])}")


def entries_since(journal: Journal, mark: Mark, session: str | None) -> list[JournalEntry]:
    """Return the entries to take back, the newest first, so that the files are as they were at the mark.

    An undo that came later and took back something older than the mark is taken back itself; all other undos and what
    they took back cancel each other out.
    """
    found: list[JournalEntry] = []
    settled: set[int] = set()
    for entry in with_amendments(journal.backwards()):
        if isinstance(entry, Damage):
            continue
        if entry.n <= mark.n:
            break
        origin = entry.origin
        if entry.n in settled or origin.kind == MARK:
            continue
        if origin.undoes and all(n > mark.n for n in origin.undoes):
            settled.update(origin.undoes)
        elif session in (None, origin.session):
            found.append(entry)
    if not found:
        raise UndoError(f"nothing to undo since the mark {mark.name}")
    return found
