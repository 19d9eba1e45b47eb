"""A change as a diff, for a person to read before it happens."""

from handrail.kernel.values import Change, MakeDirectory, Remove
from handrail.ops.diff import file_diff


def change_diff(change: Change) -> str:
    if isinstance(change, MakeDirectory):
        return f"new directory {change.path}\n"
    before = change.base.data if change.base else None
    if isinstance(change, Remove):
        return file_diff(change.path, before, None) if change.base else f"deleted {change.path}\n"
    return file_diff(change.path, before, change.data)
