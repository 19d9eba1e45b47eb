"""A change as a diff, for a person to read before it happens."""

from handrail.kernel.values import Change, MakeDirectory, Remove
from handrail.ops.diff import file_diff
from handrail.paths import quote, unquote


def change_diff(change: Change) -> str:
    path = unquote(change.path)
    if isinstance(change, MakeDirectory):
        return f"new directory {quote(path)}"
    before = change.base.data if change.base else None
    if isinstance(change, Remove):
        return file_diff(path, before, None) if change.base else f"deleted {quote(path)}"
    return file_diff(path, before, change.data)
