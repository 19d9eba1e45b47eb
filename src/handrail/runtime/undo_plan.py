"""Plans an undo: what each path should become, and which paths cannot be restored.

A file that changed since is merged if the merge is clean; otherwise the plan reports a conflict.
"""

from dataclasses import field
from typing import NamedTuple, TypeGuard

from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import ChangedPath, JournalEntry, KeptNode
from handrail.model.faults import NotFound, PathFault
from handrail.model.files import Change, MakeDirectory, Node, RemoveDirectory, Restore, mode_for
from handrail.model.paths import quote
from handrail.model.record import record
from handrail.ops.text.merge import merge
from handrail.ops.text.unified_diff import unified
from handrail.runtime.session import Services

_DIRECTORY = Node("directory", b"", 0o755)


class UndoConflict(NamedTuple):
    """Names a path that cannot be restored."""

    path: str
    why: str
    """`changed`, `in_the_way`, `not_kept`, `damaged` or `unreadable`."""
    diff: str = ""
    """The changes that others made in it since."""


@record
class Plan:
    """Describes what an undo, a redo or a restore does, or would do."""

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


class UndoTree:
    """Plans changes: holds what is on disk, and what each path should become."""

    def __init__(self, services: Services, plan: Plan) -> None:
        self._services, self._plan = services, plan
        self._found: dict[str, Node | None] = {}
        self._wanted: dict[str, Node | None] = {}
        self._directories: dict[str, bool] = {}

    def plan_reverse(self, file: ChangedPath) -> None:
        """Plan the reverse of one recorded change; note a conflict if that is not possible."""
        self.plan_step(file.path, file.after, file.before)

    def plan_step(self, path: str, after: KeptNode | Node | None, before: KeptNode | Node | None) -> None:
        """Plan that a path goes from the state `after` to the state `before`; note a conflict if it has another one."""
        try:
            now = self._now(path)
            if "directory" in (before and before.kind, after and after.kind):
                self._step_of_directory(path, after, before, now)
                return
            was, then = self._load(after), self._load(before)
            if _same(now, was):
                self._wanted[path] = _with_mode(then, before, after, now)
            elif not _same(now, then):
                self._merge(path, now, was, then)
        except _CannotRestore as problem:
            self._plan.conflicts.append(UndoConflict(path, problem.why, problem.diff))

    def make(self, path: str, node: KeptNode | None, latest: KeptNode | None) -> None:
        """Plan that a path becomes `node`. Only `latest`, its last recorded state, may give way to a directory."""
        try:
            now = self._now(path)
            kinds = {now and now.kind, node and node.kind}
            if "directory" in kinds and kinds & {"file", "link"} and not _same(now, self._load(latest)):
                raise _CannotRestore("in_the_way")
            if not (now and node and now.kind == node.kind == "directory"):
                self._wanted[path] = self._load(node)
        except _CannotRestore as problem:
            self._plan.conflicts.append(UndoConflict(path, problem.why, problem.diff))

    def changes(self) -> list[Change]:
        """Return the changes: new directories first, removed directories last, the innermost before the outer ones."""
        made: list[Change] = []
        restored: list[Change] = []
        removed: list[Change] = []
        whole: tuple[str, ...] = ()
        for path, wanted in sorted(self._wanted.items()):
            found = self._found[path]
            if path.startswith(whole):
                continue  # part of a directory that comes or goes as a whole
            if found and wanted and _is_directory(found) != _is_directory(wanted):
                whole = (*whole, f"{path}/")
                restored += self._replacement(path, found, wanted)
            elif _is_directory(wanted):
                made += [] if found else [MakeDirectory(quote(path), wanted.mode or None)]
            elif _is_directory(found):
                removed += [RemoveDirectory(quote(path))] if self._would_be_empty(path) else []
            elif not _same(found, wanted) or _has_other_mode(found, wanted):
                restored.append(Restore(quote(path), found, wanted))
        return [*made, *restored, *reversed(removed)]

    def _replacement(self, path: str, found: Node, wanted: Node) -> list[Change]:
        """Return the change for a path that becomes a directory, or stops being one, with its content."""
        try:
            return [Restore(quote(path), self._with_found(path, found), self._with_wanted(path, wanted))]
        except _CannotRestore as problem:
            self._plan.conflicts.append(UndoConflict(path, problem.why))
            return []

    def _with_found(self, path: str, node: Node) -> Node:
        """Return a directory with its content; raise a conflict if it holds a file that should stay."""
        if not _is_directory(node):
            return node
        inside = []
        for name in self._services.reader_of(path).names(quote(path)):
            each = self._found.get(f"{path}/{name}")
            if each is None or self._wanted.get(f"{path}/{name}", each) is not None:
                raise _CannotRestore("in_the_way")
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
                self._found[path] = self._services.reader_of(path).node(quote(path)) if there else None
            except PathFault:
                raise _CannotRestore("unreadable") from None
        return self._wanted.get(path, self._found[path])

    def _is_directory(self, path: str) -> bool:
        """Return True if the path and all its parents are directories, not links."""
        if path and path not in self._directories:
            above = self._is_directory(path.rpartition("/")[0])
            try:
                found = above and self._services.reader_of(path).stat(quote(path), follow=False).is_directory
            except NotFound:
                found = False
            self._directories[path] = found
        return self._directories.get(path, True)

    def _load(self, node: KeptNode | Node | None) -> Node | None:
        if node is None or isinstance(node, Node):
            return node
        if node.kind == "file":
            if not node.kept:
                raise _CannotRestore("not_kept")
            try:
                return Node("file", self._services.journal.blobs.get(node.kept), node.mode)
            except BlobLost:
                raise _CannotRestore("damaged") from None
        return Node(node.kind, node.kept.encode(errors="surrogateescape"), node.mode)

    def _step_of_directory(
        self, path: str, after: KeptNode | Node | None, before: KeptNode | Node | None, now: Node | None
    ) -> None:
        if before is None:
            if now is not None and now.kind == "directory":
                self._wanted[path] = None
        elif _same(now, self._load(after)):
            self._wanted[path] = self._load(before)
        elif not _same(now, self._load(before)):
            raise _CannotRestore("in_the_way")

    def _merge(self, path: str, now: Node | None, was: Node | None, then: Node | None) -> None:
        kinds = {each and each.kind for each in (now, was, then)}
        if kinds != {"file"} or now is None or was is None or then is None:
            raise _CannotRestore("in_the_way" if "directory" in kinds else "changed", _difference(path, was, now))
        merged = merge(was.data, now.data, then.data)
        if merged is None:
            raise _CannotRestore("changed", _difference(path, was, now))
        self._wanted[path] = _with_mode(Node("file", merged, then.mode), then, was, now)
        if path not in self._plan.merged:
            self._plan.merged.append(path)

    def _would_be_empty(self, path: str) -> bool:
        inside = [f"{path}/{entry.name}" for entry in self._services.reader_of(path).entries(quote(path))]
        return all(each in self._wanted and self._wanted[each] is None for each in inside)


class _CannotRestore(Exception):  # noqa: N818  caught by the caller, who knows the path
    def __init__(self, why: str, diff: str = "") -> None:
        super().__init__(why)
        self.why, self.diff = why, diff


def _is_directory(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == "directory"


def _has_other_mode(found: Node | None, wanted: Node | None) -> bool:
    return found is not None and wanted is not None and found.mode != mode_for(wanted, found)


def _same(one: Node | None, two: Node | None) -> bool:
    return one is None if two is None else two.same(one)


def _with_mode(
    then: Node | None, before: KeptNode | Node | None, after: KeptNode | Node | None, now: Node | None
) -> Node | None:
    """Return the node with its former mode, unless the mode was changed since."""
    if then is None or then.kind != "file" or now is None or now.kind != "file":
        return then
    kept = after is not None and now.mode != after.mode
    return Node("file", then.data, now.mode if kept or before is None else before.mode)


def _difference(path: str, was: Node | None, now: Node | None) -> str:
    texts = [each.data if each is not None and each.kind == "file" else None for each in (was, now)]
    return "" if texts == [None, None] else unified(path, *texts)
