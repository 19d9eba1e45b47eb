"""Lists, undoes, redoes and restores changes. An undo is a commit like any other: asked for, all or nothing, recorded.

A file that changed since is merged if the merge is clean; otherwise nothing is done, and the conflicts are reported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from typing import NamedTuple

from handrail.errors import UndoError
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import ChangedPath, HistoryEntry, Journal, JournalEntry, KeptNode
from handrail.model.effects import Effect
from handrail.model.faults import Conflict, Fault, NotADirectory, NotFound, PathFault
from handrail.model.files import Change, MakeDirectory, Node, RemoveDirectory, Restore, mode_for
from handrail.model.paths import quote
from handrail.model.record import record
from handrail.ops.text.merge import merge
from handrail.ops.text.unified_diff import unified
from handrail.runtime.call import Call
from handrail.runtime.session import Services, Session
from handrail.tools.fault_errors import history_error

KINDS = ("undo", "redo", "restore")
"""The names that approval rules use."""
_DIRECTORY = Node("directory", b"", 0o755)


class UndoConflict(NamedTuple):
    """A path that cannot be restored."""

    path: str
    why: str
    """`changed`, `in_the_way`, `not_kept`, `damaged` or `unreadable`."""
    diff: str = ""
    """What others changed in it since."""


@record
class Plan:
    """What an undo, a redo or a restore does, or would do."""

    kind: str
    entries: list[JournalEntry]
    changes: list[Change] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    conflicts: list[UndoConflict] = field(default_factory=list)
    done: bool = False
    whole: bool = True
    """True if no part of the entries is left out."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the entries."""
        return tuple(entry.n for entry in self.entries)


class History:
    """The recorded changes of a workspace: list, undo, redo and restore them."""

    def __init__(self, session: Session) -> None:
        self._session, self._services = session, session.services

    def entries(self, limit: int | None = 50, *, session: str | None = None) -> list[HistoryEntry]:
        """Return at most `limit` entries, the newest first, of one session or of all."""
        return list(islice(_standing(self._services.journal, session), limit))

    def undo(
        self,
        n: int | None = None,
        paths: Sequence[str] = (),
        *,
        since: int | None = None,
        of: str | None = None,
        dry_run: bool = False,
    ) -> Plan:
        """Undo entry `n`, or all entries `since` one, or all `of` a session; by default the last that is not undone.

        With `paths`, undo only the changes to these paths and below them; the entry is then not marked as undone.
        """

        def plan() -> Plan:
            return self._plan("undo", self._chosen(n, since, of), [self._place(path) for path in paths])

        return self._try(plan, dry_run=dry_run)

    def redo(self, *, dry_run: bool = False) -> Plan:
        """Undo the last undo."""
        return self._try(lambda: self._plan("redo", self._last_undo(), []), dry_run=dry_run)

    def restore(self, path: str, at: int, *, dry_run: bool = False) -> Plan:
        """Restore a file, or all known files of a directory, as they were after entry `at`; 0: before all entries."""
        return self._try(lambda: self._plan_restore(self._place(path), at), dry_run=dry_run)

    def _place(self, path: str) -> str:
        """Return a path as the journal has it. Its parents may be missing, or not be directories any more."""
        try:
            place = self._services.boundary.locate(path, follow=False, future=True)
        except NotADirectory:
            return "/".join(self._services.boundary.split(path).parts)
        place.close()
        return place.target

    def _try(self, make: Callable[[], Plan], *, dry_run: bool) -> Plan:
        try:
            with self._session.open_calls:
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
        call = Call(self._session, "handrail", plan.kind, params, Effect.READ | Effect.WRITE)
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

    def _chosen(self, n: int | None, since: int | None, of: str | None) -> list[JournalEntry]:
        found: list[JournalEntry] = []
        for entry, undone in _standing(self._services.journal):
            if n is not None and entry.n <= n:
                if entry.n < n:
                    break
                if undone:
                    raise UndoError(f"entry {n} is already undone")
                return [entry]
            if since is not None and entry.n < since:
                break
            wanted = entry.origin.session == of if of is not None else n is None
            if wanted and not undone and entry.origin.kind not in ("undo", "redo"):
                found.append(entry)
                if since is None and of is None:
                    break
        if n is not None:
            raise UndoError(f"entry {n} not found")
        if not found:
            raise UndoError("nothing to undo")
        return found

    def _last_undo(self) -> list[JournalEntry]:
        for entry, undone in _standing(self._services.journal):
            if entry.origin.kind == "undo" and not undone:
                return [entry]
        raise UndoError("nothing to redo")

    # ── working out ──

    def _plan(self, kind: str, entries: list[JournalEntry], places: list[str]) -> Plan:
        plan = Plan(kind, entries)
        tree = _PlannedTree(self._services, plan)
        meant = set[str]()
        for entry in entries:
            for file in reversed(entry.files):
                within = [place for place in places if f"{file.path}/".startswith(f"{place}/" if place else "")]
                meant.update(within)
                if within or not places:
                    tree.turn_back(file)
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
        for entry, _ in _standing(self._services.journal):
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
        tree = _PlannedTree(self._services, plan)
        for each, node in sorted(wanted.items()):
            tree.make(each, node, latest[each])
        plan.changes = tree.changes()
        return plan


def _standing(journal: Journal, session: str | None = None) -> Iterator[HistoryEntry]:
    return (each for each in journal.listed(session) if isinstance(each, HistoryEntry))


class _PlannedTree:
    """Plans changes: holds what is on disk, and what each path should become."""

    def __init__(self, services: Services, plan: Plan) -> None:
        self._services, self._plan = services, plan
        self._found: dict[str, Node | None] = {}
        self._wanted: dict[str, Node | None] = {}
        self._directories: dict[str, bool] = {}

    def turn_back(self, file: ChangedPath) -> None:
        """Plan the reverse of one recorded change; note a conflict if that is not possible."""
        try:
            now = self._now(file.path)
            if "directory" in (file.before and file.before.kind, file.after and file.after.kind):
                self._turn_directory(file, now)
                return
            was, then = self._load(file.after), self._load(file.before)
            if _same(now, was):
                self._wanted[file.path] = _with_mode(then, file.before, file.after, now)
            elif not _same(now, then):
                self._merge(file, now, was, then)
        except _Clashes as clash:
            self._plan.conflicts.append(UndoConflict(file.path, clash.why, clash.diff))

    def make(self, path: str, node: KeptNode | None, latest: KeptNode | None) -> None:
        """Plan that a path becomes `node`. Only `latest`, its last recorded state, may give way to a directory."""
        try:
            now = self._now(path)
            kinds = {now and now.kind, node and node.kind}
            if "directory" in kinds and kinds & {"file", "link"} and not _same(now, self._load(latest)):
                raise _Clashes("in_the_way")
            if not (now and node and now.kind == node.kind == "directory"):
                self._wanted[path] = self._load(node)
        except _Clashes as clash:
            self._plan.conflicts.append(UndoConflict(path, clash.why, clash.diff))

    def changes(self) -> list[Change]:
        """Return the changes: new directories first, removed directories last, the innermost before the outer ones."""
        made: list[Change] = []
        turned: list[Change] = []
        gone: list[Change] = []
        whole: tuple[str, ...] = ()
        for path, wanted in sorted(self._wanted.items()):
            found, name = self._found[path], quote(path)
            if path.startswith(whole):
                continue  # part of a directory that comes or goes as a whole
            if found and wanted and found.kind != wanted.kind and "directory" in (found.kind, wanted.kind):
                whole = (*whole, f"{path}/")
                turned += self._replacement(path, found, wanted)
            elif wanted is not None and wanted.kind == "directory":
                made += [] if found else [MakeDirectory(name, wanted.mode or None)]
            elif found is not None and found.kind == "directory":
                gone += [RemoveDirectory(name)] if self._would_be_empty(path) else []
            elif not _same(found, wanted) or (found and wanted and found.mode != mode_for(wanted, found)):
                turned.append(Restore(name, found, wanted))
        return [*made, *turned, *reversed(gone)]

    def _replacement(self, path: str, found: Node, wanted: Node) -> list[Change]:
        """Return the change for a path that becomes a directory, or stops being one, with its content."""
        try:
            return [Restore(quote(path), self._with_found(path, found), self._with_wanted(path, wanted))]
        except _Clashes as clash:
            self._plan.conflicts.append(UndoConflict(path, clash.why))
            return []

    def _with_found(self, path: str, node: Node) -> Node:
        """Return a directory with its content; raise a conflict if it holds a file that should stay."""
        if node.kind != "directory":
            return node
        inside = []
        for name in self._services.reader.names(quote(path)):
            each = self._found.get(f"{path}/{name}")
            if each is None or self._wanted.get(f"{path}/{name}", each) is not None:
                raise _Clashes("in_the_way")
            inside.append((name, self._with_found(f"{path}/{name}", each)))
        return node._replace(inside=tuple(inside))

    def _with_wanted(self, path: str, node: Node) -> Node:
        inside: dict[str, Node] = {}
        for each, wanted in sorted(self._wanted.items()):
            if wanted is not None and each.startswith(f"{path}/"):
                name, _, deeper = each.removeprefix(f"{path}/").partition("/")
                inside.setdefault(name, _DIRECTORY if deeper else wanted)
        return node._replace(
            inside=tuple((name, self._with_wanted(f"{path}/{name}", inner)) for name, inner in inside.items())
        )

    def _now(self, path: str) -> Node | None:
        if path not in self._found:
            try:
                there = self._is_directory(path.rpartition("/")[0])
                self._found[path] = self._services.reader.standing(quote(path)) if there else None
            except PathFault:
                raise _Clashes("unreadable") from None
        return self._wanted.get(path, self._found[path])

    def _is_directory(self, path: str) -> bool:
        """Return True if the path and all its parents are directories, not links."""
        if path and path not in self._directories:
            above = self._is_directory(path.rpartition("/")[0])
            try:
                found = above and self._services.reader.stat(quote(path), follow=False).is_directory
            except NotFound:
                found = False
            self._directories[path] = found
        return self._directories.get(path, True)

    def _load(self, node: KeptNode | None) -> Node | None:
        if node is None:
            return None
        if node.kind == "file":
            if not node.kept:
                raise _Clashes("not_kept")
            try:
                return Node("file", self._services.journal.blobs.get(node.kept), node.mode)
            except BlobLost:
                raise _Clashes("damaged") from None
        return Node(node.kind, node.kept.encode(errors="surrogateescape"), node.mode)

    def _turn_directory(self, file: ChangedPath, now: Node | None) -> None:
        if file.before is None:
            if now is not None and now.kind == "directory":
                self._wanted[file.path] = None
        elif _same(now, self._load(file.after)):
            self._wanted[file.path] = self._load(file.before)
        elif not _same(now, self._load(file.before)):
            raise _Clashes("in_the_way")

    def _merge(self, file: ChangedPath, now: Node | None, was: Node | None, then: Node | None) -> None:
        kinds = {each and each.kind for each in (now, was, then)}
        if kinds != {"file"} or now is None or was is None or then is None:
            raise _Clashes("in_the_way" if "directory" in kinds else "changed", _difference(file.path, was, now))
        merged = merge(was.data, now.data, then.data)
        if merged is None:
            raise _Clashes("changed", _difference(file.path, was, now))
        turned = Node("file", merged, then.mode)
        self._wanted[file.path] = _with_mode(turned, file.before, file.after, now)
        if file.path not in self._plan.merged:
            self._plan.merged.append(file.path)

    def _would_be_empty(self, path: str) -> bool:
        inside = [f"{path}/{entry.name}" for entry in self._services.reader.entries(quote(path))]
        return all(each in self._wanted and self._wanted[each] is None for each in inside)


class _Clashes(Exception):  # noqa: N818  caught by the caller, who knows the path
    def __init__(self, why: str, diff: str = "") -> None:
        super().__init__(why)
        self.why, self.diff = why, diff


def _same(one: Node | None, two: Node | None) -> bool:
    return one is None if two is None else two.same(one)


def _with_mode(then: Node | None, before: KeptNode | None, after: KeptNode | None, now: Node | None) -> Node | None:
    """Return the node with its former mode, unless the mode was changed since."""
    if then is None or then.kind != "file" or now is None or now.kind != "file":
        return then
    kept = after is not None and now.mode != after.mode
    return Node("file", then.data, now.mode if kept or before is None else before.mode)


def _difference(path: str, was: Node | None, now: Node | None) -> str:
    texts = [each.data if each is not None and each.kind == "file" else None for each in (was, now)]
    return "" if texts == [None, None] else unified(path, *texts)
