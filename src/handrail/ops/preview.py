"""A change as a diff, for a person to read before it happens."""

from handrail.kernel.values import Change, MakeDirectory, Remove
from handrail.ops.diff import unified
from handrail.paths import quote, unquote


def change_diff(change: Change) -> str:
    path = unquote(change.path)
    if isinstance(change, MakeDirectory):
        return f"new directory {quote(path)}\n"
    base = change.base
    if isinstance(change, Remove):
        return unified(path, base.data, None, old_mode=base.mode) if base else f"deleted {quote(path)}\n"
    if base is None:
        return unified(path, None, change.data, new_mode=change.mode)
    mode = base.mode if change.mode is None else change.mode
    return unified(path, base.data, change.data, old_mode=base.mode, new_mode=mode)
