"""Lists, undoes, redoes and restores changes. An undo is a commit like any other: asked for, all or nothing, recorded.

A file that changed since is merged if the merge is clean; otherwise nothing is done, and the conflicts are reported.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

from handrail.errors import UndoError
from handrail.kernel.journal.journal import HistoryEntry, Journal, JournalEntry, KeptNode
from handrail.model.effects import Effect
from handrail.model.faults import Conflict, Fault, NotADirectory
from handrail.model.paths import quote
from handrail.runtime.call import Call
from handrail.runtime.entry_facts import shown_diff, shown_entry
from handrail.runtime.file_access import BOTH_TREES
from handrail.runtime.session import Session
from handrail.runtime.undo_marks import MARK, Mark, checked_name, entries_since, find_mark, mark_origin, marks
from handrail.runtime.undo_plan import Plan, UndoTree
from handrail.tools.fault_errors import history_error


class History:
    """Lists, undoes, redoes and restores the recorded changes of a workspace."""

    def __init__(self, session: Session, call: Call | None = None) -> None:
        """`call` is the call of a tool that works on the history; None if the caller of the library does."""
        self._session, self._services, self._call = session, session.services, call

    def entries(self, limit: int | None = 50, *, session: str | None = None) -> list[HistoryEntry]:
        """Return at most `limit` entries, the newest first, of one session or of all."""
        return list(islice(_undamaged(self._services.journal, session), limit))

    def undo(
        self,
        n: int | None = None,
        paths: Sequence[str] = (),
        *,
        since: int | None = None,
        to: str | None = None,
        of: str | None = None,
        dry_run: bool = False,
    ) -> Plan:
        """Undo entry `n`, or all entries `since` one, or all `of` a session; by default the last that is not undone.

        With `to`, undo everything since the newest mark of this name, or, with `of`, what one session did since then.
        With `paths`, undo only the changes to these paths and below them; the entry is then not marked as undone.
        """

        def plan() -> Plan:
            chosen = self._chosen(n, since, of) if to is None else self._since_mark(to, of)
            return self._plan("undo", chosen, [self._place(path) for path in paths])

        return self._try(plan, dry_run=dry_run)

    def shown(
        self, limit: int = 50, *, session: str | None = None, commands_of: str | None = None
    ) -> list[dict[str, Any]]:
        """Return at most `limit` entries as JSON values, the newest first, without protected files.

        `commands_of` is a session: the commands of all other sessions are left out.
        """
        return [shown_entry(self._services, each, commands_of) for each in self.entries(limit, session=session)]

    def diff(self, n: int) -> str:
        """Return the changes of entry `n` as a diff, without protected files. Raises UndoError if there is none."""
        entry = self._services.journal.entry(n)
        if entry is None:
            raise UndoError(f"entry {n} not found")
        return shown_diff(self._services, entry)

    def mark(self, name: str) -> int:
        """Set a mark, to which `undo(to=name)` takes everything back. Returns the number of its entry."""
        plain, journal = checked_name(name), self._services.journal
        if not journal.on:
            raise UndoError("there are no marks, because the journal is off")
        try:
            with self._services.state.lock():
                journal.append(journal.compose(mark_origin(plain, self._session.id), ()))
                return journal.last_number()
        except OSError as error:
            raise UndoError(f"cannot set a mark: {error.strerror or error}") from None

    def marks(self) -> list[Mark]:
        """Return all marks, the newest first."""
        return marks(self._services.journal)

    def redo(self, *, dry_run: bool = False) -> Plan:
        """Undo the last undo."""
        return self._try(lambda: self._plan("redo", self._last_undo(), []), dry_run=dry_run)

    def restore(self, path: str, at: int, *, dry_run: bool = False) -> Plan:
        """Restore a file, or all known files of a directory, as they were after entry `at`; 0: before all entries."""
        return self._try(lambda: self._plan_restore(self._place(path), at), dry_run=dry_run)

    def _place(self, path: str) -> str:
        """Return a path as the journal has it. Its parents may be missing, or not be directories any more."""
        boundary = self._services.trees.named(path)
        try:
            place = boundary.locate(path, follow=False, future=True)
        except NotADirectory:
            return boundary.shown("/".join(boundary.split(path).parts))
        place.close()
        return place.target

    def _try(self, make: Callable[[], Plan], *, dry_run: bool) -> Plan:
        try:
            with self._session.open_calls if self._call is None else nullcontext():  # a tool's call counts already
                return self._try_again(make, dry_run=dry_run)
        except Fault as fault:
            raise history_error(fault) from fault

    def _try_again(self, make: Callable[[], Plan], *, dry_run: bool) -> Plan:
        for _ in range(self._services.limits.conflict_retries):
            plan = make()
            if plan.conflicts or dry_run:
                return plan
            try:
                self._commit(plan, make)
            except Conflict:
                continue  # a file changed after the plan was made
            return plan
        raise UndoError("the files keep changing; nothing was done")

    def _commit(self, plan: Plan, make: Callable[[], Plan]) -> None:
        params = {"entries": list(plan.numbers)} if plan.kind != "restore" else {"at": sum(plan.numbers)}
        effects = Effect.READ | Effect.WRITE
        call = Call(self._session, "handrail", plan.kind, params, effects, mount=BOTH_TREES)
        if self._call is not None:
            call.asked, call.judged, call.warnings = self._call.asked, self._call.judged, self._call.warnings
        undoes = plan.numbers if plan.whole else ()
        approved = call.files.ask(*plan.changes) if plan.changes else None
        if approved is not None:
            self._expect_same(plan, make())
            call.files.carry_out(approved, plan.kind, undoes)
        elif undoes:  # nothing to change: only record it, or the next undo would begin here again
            verdict = call.ask(Effect.READ)
            with self._services.state.lock():
                self._expect_same(plan, make())
                self._services.journal.append(
                    self._services.journal.compose(call.origin(verdict, plan.kind, undoes), ())
                )
        plan.done = True

    def _expect_same(self, approved: Plan, now: Plan) -> None:
        """Raise Conflict if the plan has changed since it was approved: the new one must be asked about."""
        if (now.numbers, now.changes, now.conflicts) != (approved.numbers, approved.changes, []):
            raise Conflict(self._services.boundary.root)

    # ── choosing ──

    def _since_mark(self, name: str, of: str | None) -> list[JournalEntry]:
        journal = self._services.journal
        return entries_since(journal, find_mark(journal, name), of)

    def _chosen(self, n: int | None, since: int | None, of: str | None) -> list[JournalEntry]:
        """Return the entries that an undo takes back, the newest first. Raises UndoError if there are none."""
        found: list[JournalEntry] = []
        for entry, undone in _undamaged(self._services.journal):
            if n is not None and entry.n <= n:
                if entry.n < n:
                    break
                if undone or entry.origin.kind == MARK:
                    raise UndoError(f"entry {n} is {'already undone' if undone else 'a mark: use --to'}")
                return [entry]
            if since is not None and entry.n < since:
                break
            wanted = entry.origin.session == of if of is not None else n is None
            if wanted and not undone and entry.origin.kind not in ("undo", "redo", MARK):
                found.append(entry)
                if since is None and of is None:
                    break
        if n is not None:
            part = self._services.journal.entry(n)
            whole = part.origin.amends if part else None
            raise UndoError(f"entry {n} not found" if whole is None else f"entry {n} is a part of entry {whole}")
        if not found:
            raise UndoError("nothing to undo")
        return found

    def _last_undo(self) -> list[JournalEntry]:
        for entry, undone in _undamaged(self._services.journal):
            if entry.origin.kind == "undo" and not undone:
                return [entry]
        raise UndoError("nothing to redo")

    # ── working out ──

    def _plan(self, kind: str, entries: list[JournalEntry], places: list[str]) -> Plan:
        plan = Plan(kind, entries)
        tree = UndoTree(self._services, plan)
        meant = set[str]()
        for entry in entries:
            for file in reversed(entry.files):
                within = [place for place in places if f"{file.path}/".startswith(f"{place}/" if place else "")]
                meant.update(within)
                if within or not places:
                    tree.plan_reverse(file)
                else:
                    plan.whole = False
        if strange := [quote(place) for place in places if place not in meant]:
            raise UndoError(f"entry {entries[0].n} did not change {', '.join(strange)}")
        plan.changes = tree.changes()
        return plan

    def _plan_restore(self, path: str, at: int) -> Plan:
        wanted: dict[str, KeptNode | None] = {}
        latest: dict[str, KeptNode | None] = {}
        settled: set[str] = set()
        found = self._services.journal.entry(at)
        if found is None and at != 0:
            raise UndoError(f"entry {at} not found")
        for entry, _ in _undamaged(self._services.journal):
            for file in entry.files:
                if file.path in settled or not f"{file.path}/".startswith(f"{path}/"):
                    continue
                latest.setdefault(file.path, file.after)
                wanted[file.path] = file.before if entry.n > at else file.after
                if entry.n <= at:
                    settled.add(file.path)
            if path in settled and (node := wanted[path]) and node.kind != "directory":
                break
        if not wanted:
            raise UndoError(f"the journal has no entry for {quote(path)}")
        plan = Plan("restore", [found] if found else [], whole=False)
        tree = UndoTree(self._services, plan)
        for each, node in sorted(wanted.items()):
            tree.make(each, node, latest[each])
        plan.changes = tree.changes()
        return plan


def _undamaged(journal: Journal, session: str | None = None) -> Iterator[HistoryEntry]:
    return (each for each in journal.listed(session) if isinstance(each, HistoryEntry))
