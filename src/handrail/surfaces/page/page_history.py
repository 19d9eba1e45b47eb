"""Answers the page's requests about the history of a workspace: entries, diffs, marks, and undo."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Any

from anyio import to_thread
from starlette.routing import Route

from handrail.kernel.journal.journal import HistoryEntry, Journal, open_journal
from handrail.library.history import History
from handrail.model.approval import Question, Verdict
from handrail.model.paths import quote
from handrail.ops.text.change_preview import change_diff
from handrail.ops.text.display import one_line, visible
from handrail.policy.question_facts import question_diff
from handrail.runtime.entry_facts import entry_diff, facts
from handrail.runtime.undo_plan import Plan
from handrail.surfaces.page.diff_rows import Diff
from handrail.surfaces.page.page_app import BadRequest, Json, diff_piece, posted
from handrail.surfaces.page.page_hub import PageHub
from handrail.surfaces.page.page_workspaces import bad_requests, in_workspace, known_root

_ENTRIES = 5000
"""The most entries of a history that the page lists and searches."""
_DIFFS = 32
_LINE = 300


class PageHistory:
    """Reads histories, and undoes changes after the user has seen the plan."""

    def __init__(self, hub: PageHub) -> None:
        self._hub = hub
        self._diffs = OrderedDict[str, Diff]()

    def routes(self) -> list[Route]:
        """Return the routes that this class answers."""
        paths = {"/api/history": self.entries, "/api/entry": self.entry, "/api/plan": self.plan, "/api/undo": self.undo}
        paths |= {"/api/history-diff": self.diff, "/api/mark": self.mark}
        return [Route(path, posted(work), methods=["POST"]) for path, work in paths.items()]

    async def entries(self, body: Json) -> Json:
        """Return the entries of a workspace, the newest first, and its marks."""
        root, search = known_root(self._hub, body), str(body.get("search", "")).lower()
        return await to_thread.run_sync(_entries, root, search)

    async def entry(self, body: Json) -> Json:
        """Return one entry: by its number, or by the call that made it."""
        root = known_root(self._hub, body)
        found = await to_thread.run_sync(_entry, root, body)
        if found is None:
            return {"entry": None}
        diff = await to_thread.run_sync(_diff_of, root, found)
        return {"entry": _shown(found), "diff": self._kept(f"{root}#{found.n}", diff)}

    async def plan(self, body: Json) -> Json:
        """Return what an undo, a redo or a restore would do."""
        plan, seen = await to_thread.run_sync(_planned, known_root(self._hub, body), body)
        shown = {"kind": plan.kind, "entries": list(plan.numbers), "seen": seen, "changes": len(plan.changes)}
        shown["merged"] = [one_line(quote(each), _LINE) for each in plan.merged]
        shown["conflicts"] = [
            [one_line(quote(each.path), _LINE), each.why, visible(each.diff)] for each in plan.conflicts
        ]
        return shown | {"diff": self._kept(f"plan {seen}", Diff.of("".join(map(change_diff, plan.changes))))}

    async def undo(self, body: Json) -> Json:
        """Carry out exactly the plan that the user has seen."""
        plan = await to_thread.run_sync(_done, known_root(self._hub, body), body)
        return {"done": plan.done, "kind": plan.kind, "entries": list(plan.numbers)}

    async def mark(self, body: Json) -> Json:
        """Set a mark."""
        name = str(body.get("name", ""))
        return {
            "n": await to_thread.run_sync(
                _with_history, known_root(self._hub, body), lambda history: history.mark(name)
            )
        }

    async def diff(self, body: Json) -> Json:
        """Return some rows of a diff that another answer has announced."""
        diff = self._diffs.get(str(body.get("diff")))
        if diff is None:
            raise BadRequest("this diff is not known any more", 404)
        return diff_piece(diff, body)

    def _kept(self, name: str, diff: Diff) -> Json:
        self._diffs[name] = diff
        while len(self._diffs) > _DIFFS:
            self._diffs.popitem(last=False)
        return {**diff.summary, "name": name}


def _journal(root: str) -> Journal:
    with bad_requests(root):
        return open_journal(root)[1]


def _entries(root: str, search: str) -> Json:
    listed = [*islice((each for each in _journal(root).listed() if isinstance(each, HistoryEntry)), _ENTRIES + 1)]
    words, shown = search.split(), map(_shown, listed[:_ENTRIES])
    found = [each for each in shown if all(word in str([*each.values()]).lower() for word in words)]
    return {"entries": found, "more": len(listed) > _ENTRIES}


def _shown(listed: HistoryEntry) -> Json:
    """Return an entry with every text visible."""
    return {name: _visible(value) for name, value in facts(listed).items()}


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value, _LINE)
    if isinstance(value, dict):
        return {name: visible(each) if name == "path" else _visible(each) for name, each in value.items()}
    return [_visible(each) for each in value] if isinstance(value, list) else value


def _entry(root: str, body: Json) -> HistoryEntry | None:
    journal = _journal(root)
    n, session, call = body.get("n"), body.get("session"), body.get("call")
    for each in islice(journal.listed(), _ENTRIES):
        if not isinstance(each, HistoryEntry):
            continue
        origin = each.entry.origin
        if each.n == n if n is not None else (origin.session, origin.call) == (session, call):
            return each
    return None


def _diff_of(root: str, listed: HistoryEntry) -> Diff:
    journal = _journal(root)
    return Diff.of(entry_diff(journal, listed.entry))


def _act(history: History, body: Json, *, dry_run: bool) -> Plan:
    """Plan or do what a request names."""
    kind, n, path = body.get("kind"), body.get("n"), body.get("path")
    if kind == "redo":
        return history.redo(dry_run=dry_run)
    if kind == "restore" and isinstance(path, str) and isinstance(n, int):
        return history.restore(path, n, dry_run=dry_run)
    if kind != "undo":
        raise BadRequest("kind must be undo, redo or restore")
    to, of = (None if body.get(name) is None else str(body[name]) for name in ("to", "session"))
    return history.undo(n if isinstance(n, int) else None, to=to, of=of, dry_run=dry_run)


def _planned(root: str, body: Json) -> tuple[Plan, str]:
    plan = _with_history(root, lambda history: _act(history, body, dry_run=True))
    return plan, _digest("".join(map(change_diff, plan.changes)))


def _done(root: str, body: Json) -> Plan:
    """Carry out a plan; the approval covers exactly the changes that the user has seen."""
    seen = body.get("seen")

    def approve(question: Question) -> Verdict:
        if _digest(question_diff(question)) != seen:
            return Verdict.deny("the files have changed since: look at the plan again", decided_by="user")
        return Verdict(True, "user")

    plan: Plan = _with_history(root, lambda history: _act(history, body, dry_run=False), approve)
    if plan.conflicts:
        raise BadRequest("the files have changed since: look at the plan again", 409)
    return plan


def _with_history(
    root: str, work: Callable[[History], Any], approve: Callable[[Question], Verdict] | None = None
) -> Any:
    """Open a workspace for one piece of work on its history."""
    return in_workspace(root, lambda workspace: work(workspace.history()), approve)


def _digest(diff: str) -> str:
    return hashlib.sha256(diff.encode(errors="surrogateescape")).hexdigest()
