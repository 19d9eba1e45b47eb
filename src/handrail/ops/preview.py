"""A change as a diff, for a person to read before it happens."""

from handrail.kernel.values import Change, MakeDirectory, Remove, RemoveDirectory, Restore, Standing
from handrail.ops.diff import unified
from handrail.paths import quote, unquote


def change_diff(change: Change) -> str:
    path = unquote(change.path)
    if isinstance(change, MakeDirectory):
        return f"new directory {quote(path)}\n"
    if isinstance(change, RemoveDirectory):
        return f"deleted directory {quote(path)}\n"
    if isinstance(change, Restore):
        return _restored(path, change.base, change.to)
    base = change.base
    if isinstance(change, Remove):
        return unified(path, base.data, None, old_mode=base.mode) if base else f"deleted {quote(path)}\n"
    if base is None:
        return unified(path, None, change.data, new_mode=change.mode)
    mode = base.mode if change.mode is None else change.mode
    return unified(path, base.data, change.data, old_mode=base.mode, new_mode=mode)


def _restored(path: str, now: Standing | None, then: Standing | None) -> str:
    links = [f"{verb} link {quote(path)} -> {quote(each.data.decode(errors='surrogateescape'))}\n"
        for verb, each in (("deleted", now), ("new", then)) if each is not None and each.kind == "link"]  # fmt: skip
    old, new = (each if each is not None and each.kind == "file" else None for each in (now, then))
    if old is None and new is None:
        return "".join(links)
    return "".join(links) + unified(
        path,
        old.data if old else None,
        new.data if new else None,
        old_mode=old.mode if old else None,
        new_mode=new.mode if new else None,
    )
