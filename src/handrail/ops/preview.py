"""A change as a diff, for a person to read before it happens."""

from handrail.kernel.values import Change, MakeDirectory, Remove
from handrail.ops.diff import unified


def change_diff(change: Change) -> str:
    if isinstance(change, MakeDirectory):
        return f"new directory {change.path}\n"
    base = change.base
    if isinstance(change, Remove):
        return unified(change.path, base.data, None, old_mode=base.mode) if base else f"deleted {change.path}\n"
    if base is None:
        return unified(change.path, None, change.data, new_mode=change.mode)
    mode = base.mode if change.mode is None else change.mode
    return unified(change.path, base.data, change.data, old_mode=base.mode, new_mode=mode)
