"""Adds to the journal what hooks changed in the files that a call had just changed, as part of the call's entry."""

from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.commit_entry import count_lines
from handrail.kernel.journal.journal import ChangedPath, KeptNode
from handrail.model.approval import Verdict
from handrail.model.faults import PathFault
from handrail.model.files import Node, Version
from handrail.model.paths import quote
from handrail.model.warnings import HookChanged, NotJournaled

if TYPE_CHECKING:
    from handrail.runtime.call import Call

_BY_HOOK = Verdict(True, "hook")
_UNREADABLE = Node("unreadable", b"", 0)


class Written(NamedTuple):
    """Holds what a call wrote: the version of the file, and the journal entry that records it."""

    version: Version | None
    entry: int


def record_hook_changes(call: "Call") -> None:
    """Record the changes that hooks made in the files of a call, and tell the model about them."""
    changed = {place: now for place, was in call.written.items() if (now := _changed(call, place, was)) is not None}
    if not changed:
        return
    for place, (version, node) in changed.items():
        call.session.seen.wrote(place, version, node.data if node and node.kind == "file" else None)
    try:
        _amend(call, {place: node for place, (_, node) in changed.items()})
    except OSError as error:
        call.warnings.append(NotJournaled(error.strerror or str(error)))
    call.warnings.append(HookChanged([quote(place) for place in changed]))


def _changed(call: "Call", place: str, was: Written) -> tuple[Version | None, Node | None] | None:
    """Return the new version and content of a file; None if it is still the one that the call wrote.

    A file without a version was replaced by another process before the hooks ran.
    """
    if was.version is None:
        return None
    reader = call.session.services.reader_of(place)
    try:
        found = reader.boundary.stat(quote(place), follow=False)
    except PathFault:
        return None, None
    if Version.of(found) == was.version:
        return None
    try:
        return Version.of(found), reader.node(quote(place))
    except PathFault:  # it has become too large, or cannot be read
        return Version.of(found), _UNREADABLE


def _amend(call: "Call", nodes: dict[str, Node | None]) -> None:
    """Append one entry for each entry of the call that these files complete."""
    services = call.session.services
    if not services.journal.on:
        return
    with services.state.lock():
        for number in sorted({call.written[place].entry for place in nodes}):
            entry = services.journal.entry(number)
            places = {place for place in nodes if call.written[place].entry == number}
            known = [file for file in entry.files if file.path in places] if entry else []
            files = [_path(call, file, nodes[file.path]) for file in known]
            if files:
                origin = call.origin(_BY_HOOK, "commit")._replace(amends=number)
                services.journal.append(services.journal.compose(origin, files))


def _path(call: "Call", file: ChangedPath, node: Node | None) -> ChangedPath:
    """Return a path with what the call left there as `before`; its lines are counted from before the call."""
    blobs = call.session.services.journal.blobs
    if node is None:
        return ChangedPath(file.path, file.after, None)
    if node == _UNREADABLE:
        return ChangedPath(file.path, file.after, KeptNode("file"))
    if node.kind != "file":
        kept = KeptNode(node.kind, node.data.decode(errors="surrogateescape"), node.mode)
        return ChangedPath(file.path, file.after, kept)
    try:
        old = blobs.get(file.before.kept) if file.before and file.before.kept else b"" if not file.before else None
    except BlobLost:
        old = None
    kept = KeptNode("file", blobs.put(node.data), node.mode)
    return ChangedPath(file.path, file.after, kept, count_lines(old, node.data))
