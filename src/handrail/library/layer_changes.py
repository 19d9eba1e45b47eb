"""Lists what a layer changed in its root, and plans how the changes come into the root."""

import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.fs.placeholder import SPARE, is_placeholder
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import JournalEntry, KeptNode
from handrail.kernel.layers.upper_entries import entries
from handrail.kernel.layers.workspace_layer import WorkspaceLayer, walk_at
from handrail.model.faults import ProtectedPath
from handrail.model.files import Change, MakeDirectory, Node, RemoveDirectory, Restore
from handrail.model.paths import quote
from handrail.ops.git_names import OCCUPIED
from handrail.ops.text.change_preview import change_diff
from handrail.runtime.undo_plan import Plan, UndoConflict, UndoTree

if TYPE_CHECKING:
    import os  # noqa: TID251  for a type

    from handrail.kernel.fs.reader import Reader
    from handrail.runtime.session import Services


class LayerChange(NamedTuple):
    """Describes one path that differs between a layer and its root."""

    path: str
    before: Node | None
    """What the root has; None if nothing."""
    after: Node | None
    """What the layer has; None if nothing."""

    @property
    def kind(self) -> str:
        """One of: created, changed, deleted."""
        return "created" if self.before is None else "deleted" if self.after is None else "changed"

    @property
    def diff(self) -> str:
        """The change as a diff."""
        return change_diff(self._change())

    def _change(self) -> Change:
        kinds = {each.kind for each in (self.before, self.after) if each is not None}
        if kinds != {"directory"}:
            return Restore(quote(self.path), self.before, self.after)
        return RemoveDirectory(quote(self.path)) if self.after is None else MakeDirectory(quote(self.path))


def layer_changes(services: "Services", root: "Reader") -> list[LayerChange]:
    """Return what differs between a layered workspace and its root, which `root` reads, without protected files.

    Raises TooLarge if a changed file is larger than an edit may read.
    """
    found: list[LayerChange] = []
    for path in changed_paths(services):
        try:
            before, after = _node(root, path), _node(services.reader, path)
        except ProtectedPath:
            continue
        if before is not after is not None and after.kind == "other":
            continue  # a pipe or a socket, which no change can make
        both_directories = before is not None and after is not None and before.kind == after.kind == "directory"
        if not both_directories and not _equal(before, after):
            found.append(LayerChange(path, before, after))
    return found


def changed_paths(services: "Services") -> list[str]:
    """Return the paths that the layers over a root mention, sorted, and those that they hide."""
    layer = services.layer
    if layer is None:
        assert services.copied is not None  # noqa: S101  the caller has checked it
        return services.copied.changed_paths(services.limits.scan_files)
    found = set[str]()
    with layer.all_uppers() as uppers:
        for upper in uppers:
            found.update(_mentioned(layer, upper, services.boundary.fd, services.limits.scan_files))
    return sorted(found)


def _mentioned(layer: WorkspaceLayer, upper: int, view: int, most: int) -> Iterator[str]:
    def enters(path: str, found: "os.stat_result") -> bool:
        name = path.rpartition("/")[2]
        may_stand = stat.S_ISDIR(found.st_mode) or name in OCCUPIED
        return not name.startswith(SPARE) and not (may_stand and is_placeholder(view, path))

    for path, _, hides in entries(upper, enters):
        if path not in layer.own:
            yield path
        if hides:
            yield from walk_at(layer.root_view(), path, most, ())


def _node(reader: "Reader", path: str) -> Node | None:
    return reader.node(quote(path))


def _equal(before: Node | None, after: Node | None) -> bool:
    if before is None or after is None:
        return before is after
    return after.same(before) and before.mode == after.mode


def plan_of(services: "Services", changes: list[LayerChange], root: "Services") -> Plan:
    """Plan how the changes of a layer come into its root, whose services are `root`.

    A file that changed in the root since the layer first changed it is merged if the merge is clean; otherwise it is a
    conflict.
    """
    plan, layer = Plan("apply", []), services.layer or services.copied
    assert layer is not None  # noqa: S101  the caller has checked it
    tree, firsts = UndoTree(root, plan), _first_states(services, layer.record.since)
    for change in changes:
        first = _first(services, firsts[change.path]) if change.path in firsts else _UNKNOWN
        if first is not _UNKNOWN:
            tree.plan_step(change.path, first, change.after)
        elif layer.root_changed(change.path):
            plan.conflicts.append(UndoConflict(change.path, "changed"))
        else:
            tree.plan_step(change.path, change.before, change.after)
    plan.changes = tree.changes()
    return plan


_UNKNOWN = Node("other", b"", 0)
"""Stands for a state that is not stored."""


def _first(services: "Services", kept: KeptNode | None) -> Node | None:
    """Return what the layer found before its first change of a path; `_UNKNOWN` if that is not stored."""
    if kept is None:
        return None
    if kept.kind != "file":
        return Node(kept.kind, kept.kept.encode(errors="surrogateescape"), kept.mode)
    try:
        return Node("file", services.journal.blobs.get(kept.kept), kept.mode) if kept.kept else _UNKNOWN
    except BlobLost:
        return _UNKNOWN


def _first_states(services: "Services", since: int) -> "dict[str, KeptNode | None]":
    """Return what the layer found at each path before its first recorded change."""
    found: dict[str, KeptNode | None] = {}
    for entry in services.journal.backwards():
        if isinstance(entry, JournalEntry):
            if entry.n <= since:
                break
            found.update({file.path: file.before for file in entry.files})
    return found
