"""Describes entries of the history: as JSON values, and as diffs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.kernel.fs.trees import in_memory
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import ChangedPath, HistoryEntry, Journal, JournalEntry, KeptNode, Origin
from handrail.model.paths import quote
from handrail.ops.text.display import cut_middle, visible
from handrail.ops.text.unified_diff import unified

if TYPE_CHECKING:
    from handrail.runtime.session import Services

_ABOUT = {"mark": "mark"}
"""What the text of an entry is, by the kind of the entry, if not a command."""


def approver_of(origin: Origin) -> str:
    """Return who approved a change; older entries have `person` for `user`."""
    return "user" if origin.by == "person" else origin.by


def facts(listed: HistoryEntry) -> dict[str, Any]:
    """Return an entry as JSON values."""
    entry, origin = listed.entry, listed.entry.origin
    files = [
        {
            "path": quote(file.path),
            "kind": (file.after or file.before or file)[0],
            "change": "created" if file.before is None else "deleted" if file.after is None else "changed",
            **({"added": file.lines[0], "removed": file.lines[1]} if file.lines else {}),
        }
        for file in entry.files
    ]
    known = {name: getattr(origin, name) for name in ("kind", "session", "call", "call_id", "dialect", "tool")}
    return {
        "n": entry.n,
        "time": entry.time,
        **known,
        "by": approver_of(origin),
        **({_ABOUT.get(origin.kind, "command"): origin.about} if origin.about else {}),
        **({"undoes": list(origin.undoes)} if origin.undoes else {}),
        "undone": listed.undone,
        "undoable": listed.undoable,
        "files": files,
        **({"note": entry.note} if entry.note else {}),
    }


def protected_in(services: "Services") -> Callable[[str], bool]:
    """Return what says whether a path of the journal is protected now, so that no tool may show it."""
    protected = services.boundary.protected
    return lambda path: protected is not None and not in_memory(path) and protected.hides(path)


def shown_entry(services: "Services", listed: HistoryEntry, commands_of: str | None) -> dict[str, Any]:
    """Return an entry as JSON values, without protected files, and without the commands of other sessions."""
    hides = protected_in(services)
    files = tuple(file for file in listed.entry.files if not hides(file.path))
    found = facts(listed._replace(entry=listed.entry._replace(files=files)))
    if commands_of not in (None, listed.entry.origin.session):
        found.pop("command", None)
    return found


def shown_diff(services: "Services", entry: JournalEntry) -> str:
    """Return the changes of an entry as a diff that an answer can hold, without protected files."""
    diff = entry_diff(services.journal, entry, protected_in(services))
    most = services.powers.answer_bytes
    return visible(diff if most is None else cut_middle(diff, most))


def entry_diff(journal: Journal, entry: JournalEntry, hides: Callable[[str], bool] = lambda _: False) -> str:
    """Return the changes of an entry as a diff; of a path that `hides` names, only that it is protected."""
    return "".join(
        f"{quote(file.path)}: protected\n" if hides(file.path) else file_diff(journal, file) for file in entry.files
    )


def file_diff(journal: Journal, file: ChangedPath) -> str:
    """Return the change of one path as a diff, or as a line if it has no text to compare."""
    before, after = file.before, file.after
    if not (_is_file(before) and _is_file(after)):
        return (_line(file.path, "deleted", before) if before else "") + (
            _line(file.path, "new", after) if after else ""
        )
    try:
        old, new = _content(journal, before), _content(journal, after)
    except BlobLost as error:
        return f"{quote(file.path)}: {error}\n"
    if any(node is not None and not node.kept for node in (before, after)):
        return f"{quote(file.path)}: the content was not recorded\n"
    if b"\0" in (old or b"") + (new or b""):
        return f"{quote(file.path)}: binary, {len(old or b'')} -> {len(new or b'')} bytes\n"
    old_mode, new_mode = (node.mode if node else None for node in (before, after))
    return unified(file.path, old, new, old_mode=old_mode, new_mode=new_mode, exact=True)


def _is_file(node: KeptNode | None) -> bool:
    return node is None or node.kind == "file"


def _content(journal: Journal, node: KeptNode | None) -> bytes | None:
    """Return the content of a file; None if there was no file, empty if its content was not recorded."""
    if node is None:
        return None
    return journal.blobs.get(node.kept) if node.kept else b""


def _line(path: str, verb: str, node: KeptNode) -> str:
    target = f" -> {quote(node.kept)}" if node.kind == "link" else ""
    return f"{verb} {node.kind} {quote(path)}{target}\n"
