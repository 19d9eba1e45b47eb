"""Shows a change as a diff, for the user to read before the change happens."""

from handrail.model.files import Change, MakeDirectory, Node, Remove, RemoveDirectory, Restore, mode_for
from handrail.model.limits import BINARY_CHECK_BYTES
from handrail.model.paths import quote, unquote
from handrail.ops.listing import looks_binary
from handrail.ops.text.unified_diff import unified

_SET_ID = 0o6000


def change_diff(change: Change) -> str:
    """Return the diff of one change.

    Tools put text into files, so that is always shown: one NUL must not hide from the user what a shell would run.
    """
    path = unquote(change.path)
    if isinstance(change, MakeDirectory):
        return f"new directory {quote(path)}\n"
    if isinstance(change, RemoveDirectory):
        return f"deleted directory {quote(path)}\n"
    if isinstance(change, Restore):
        inside = "".join(_restored(f"{path}/{rel}", *nodes) for rel, *nodes in change.inner_changes())
        return _restored(path, change.base, change.to) + inside
    base = change.base
    if isinstance(change, Remove):
        return _readable(path, base.data, None, old_mode=base.mode) if base else f"deleted {quote(path)}\n"
    if base is None:
        return unified(path, None, change.data, new_mode=change.mode)
    mode = mode_for(change, base)
    loses_set_id = bool((mode ^ base.mode) & _SET_ID)
    return unified(path, base.data, change.data, old_mode=base.mode, new_mode=mode, exact=loses_set_id)


def _readable(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    old_mode: int | None = None,
    new_mode: int | None = None,
    exact: bool = False,
) -> str:
    """Return the diff of one file; for a binary file only that it changes, since its bytes are not readable."""
    if not any(looks_binary(data[:BINARY_CHECK_BYTES]) for data in (before, after) if data):
        return unified(path, before, after, old_mode=old_mode, new_mode=new_mode, exact=exact)
    size = "deleted" if after is None else f"{len(after)} bytes"
    return f"Binary file {quote(path)} ({size})\n"


def _restored(path: str, now: Node | None, then: Node | None) -> str:
    """Return the diff of one name that changes from the state `now` to the state `then`."""
    heads = "".join(_entry_line(path, verb, each) for verb, each in (("deleted", now), ("new", then)) if each)
    old, new = (each if each is not None and each.kind == "file" else None for each in (now, then))
    if old is None and new is None:
        return heads
    texts = [each.data if each else None for each in (old, new)]
    modes = old.mode if old else None, mode_for(new, old) if new else None
    return heads + _readable(path, *texts, old_mode=modes[0], new_mode=modes[1], exact=True)


def _entry_line(path: str, verb: str, node: Node) -> str:
    """Return the line about a link or a directory; empty for a file."""
    if node.kind == "link":
        return f"{verb} link {quote(path)} -> {quote(_text(node.data))}\n"
    return f"{verb} directory {quote(path)}\n" if node.kind == "directory" else ""


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
