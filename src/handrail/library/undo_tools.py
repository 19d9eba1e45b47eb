"""Declares the tools with which a model works on the history: history, undo, restore and mark.

They belong to no dialect, and are offered only if the caller asks for them. An undo asks like any other change.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from handrail.errors import HandrailError
from handrail.library.history import History
from handrail.model.effects import Effect
from handrail.model.faults import Fault
from handrail.model.paths import quote
from handrail.model.undo_faults import UndoConflicted, UndoFailed
from handrail.ops.text.change_preview import change_diff
from handrail.ops.text.display import cut_middle
from handrail.runtime.call import Call
from handrail.runtime.undo_plan import Plan
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

undoing = Dialect("handrail")
_CHANGES = Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE
_LISTED = 20


def with_undo_tools(dialect: Dialect) -> Dialect:
    """Return a dialect with the tools of the history added."""
    own = {name: tool._replace(dialect=dialect.name, words=dialect.words) for name, tool in undoing.tools.items()}
    return replace(dialect, tools={**dialect.tools, **own})


class ListHistory(Params):
    entry: int | None = field("The number of one entry; then the answer has its diff.", default=None)
    limit: int = field("The most entries to list, the newest first.", default=_LISTED, ge=1, le=200)
    all_sessions: bool = field("True to list also the changes of other sessions.", default=False)


class Undo(Params):
    entry: int | None = field("The number of the entry to undo; default: the last one of this session.", default=None)
    to: str | None = field("A mark: undo everything that this session changed since then.", default=None)
    only: list[str] | None = field("Undo only the changes to these paths.", name="paths", default=None)
    all_sessions: bool = field("True to undo also the changes of other sessions.", default=False)
    dry_run: bool = field("True to see what the undo would change.", default=False)


class RestoreFile(Params):
    path: str = field("The file or directory to restore.")
    at: int = field("The number of an entry: restore the state after it; 0: before all entries.", ge=0)
    dry_run: bool = field("True to see what would change.", default=False)


class SetMark(Params):
    name: str = field("The name of the mark, such as `before the refactoring`.")


@undoing.tool("history", Effect.READ)
def history(p: ListHistory, c: Call) -> dict[str, Any]:
    """List the recorded changes of this session, the newest first, or show one entry with its diff."""
    found = History(c.session, c)
    with _faults():
        if p.entry is not None:
            return {"entry": p.entry, "diff": found.diff(p.entry)}
        session = None if p.all_sessions else c.session.id
        return {"entries": found.shown(p.limit, session=session, commands_of=c.session.id)}


@undoing.tool("undo", _CHANGES)
def undo(p: Undo, c: Call) -> dict[str, Any]:
    """Undo the last change of this session, or one entry of the history, or everything since a mark."""
    session = None if p.all_sessions else c.session.id
    if p.entry is not None and p.to:
        raise UndoFailed("give either entry or to")

    def act(found: History) -> Plan:
        if p.to:
            return found.undo(paths=p.only or (), to=p.to, of=session, dry_run=p.dry_run)
        entry = p.entry if p.entry is not None else _last(found, session)
        return found.undo(entry, p.only or (), dry_run=p.dry_run)

    return _carry_out(c, act)


@undoing.tool("restore", _CHANGES)
def restore(p: RestoreFile, c: Call) -> dict[str, Any]:
    """Restore a file, or the known files of a directory, as they were after an entry of the history."""
    return _carry_out(c, lambda found: found.restore(p.path, p.at, dry_run=p.dry_run))


@undoing.tool("mark", Effect.READ)
def mark(p: SetMark, c: Call) -> dict[str, Any]:
    """Set a mark in the history, so that undo can take back everything that changes after it."""
    found, name = History(c.session, c), p.name.strip()
    if any(each.name == name for each in found.marks()):
        raise UndoFailed("there is a mark with this name, and it may be the user's; choose another name")
    with _faults():
        return {"mark": name, "entry": found.mark(name)}


def _last(found: History, session: str | None) -> int | None:
    """Return the last entry of a session that can be undone; None for the last one of all sessions."""
    if session is None:
        return None
    for each in found.entries(None, session=session):
        if not each.undone and each.entry.origin.kind not in ("undo", "redo", "mark"):
            return each.n
    raise UndoFailed("this session has nothing to undo")


def _carry_out(c: Call, act: Callable[[History], Plan]) -> dict[str, Any]:
    with _faults():
        plan = act(History(c.session, c))
    if plan.conflicts:
        diff = cut_middle("".join(each.diff for each in plan.conflicts), c.limits.hook_chars)
        raise UndoConflicted([quote(each.path) for each in plan.conflicts], diff)
    if plan.done:
        c.files_affected += [change.path for change in plan.changes]
    most = c.session.services.powers.answer_bytes
    diff = "".join(map(change_diff, plan.changes))
    return {
        "done": plan.done,
        "entries": list(plan.numbers),
        "merged": [quote(path) for path in plan.merged],
        "diff": diff if most is None else cut_middle(diff, most),
    }


@contextmanager
def _faults() -> Iterator[None]:
    """Turn the exceptions of the library into faults, which the dialect words."""
    try:
        yield
    except HandrailError as error:
        if isinstance(error.__cause__, Fault):
            raise error.__cause__ from None
        raise UndoFailed(error.message) from None
