"""Converts the changes of a commit into the changed paths of its journal entry."""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from handrail.kernel.fs.parallel import parallel_map
from handrail.kernel.fs.resolver import Place
from handrail.kernel.journal.blobs import Blobs
from handrail.kernel.journal.journal import ChangedPath, KeptNode
from handrail.model.files import Change, Node, Put, Remove, RemoveDirectory, Restore
from handrail.ops.text.line_diff import changes, differing, lines_of

_COUNTED_BYTES = 1 << 19
_DIFF_EFFORT = 5_000


class CommittedChange(NamedTuple):
    """Holds one prepared change: the old entry that was found, and the new file that will replace it."""

    change: Change
    target: str
    place: Place
    found: os.stat_result | None
    made: os.stat_result | None


def changed_paths(blobs: Blobs, done: list[CommittedChange], made: list[str]) -> Iterator[ChangedPath]:
    """Yield the changed paths of a commit, and store their contents as blobs.

    `made` are the directories that the commit created. Raises OSError if a content cannot be stored.
    """
    for rel in made:
        yield ChangedPath(rel, None, KeptNode("directory"))
    for names in parallel_map(lambda one: [*_paths_of(blobs, one)], done):
        yield from names


def _paths_of(blobs: Blobs, done: CommittedChange) -> Iterator[ChangedPath]:
    if isinstance(done.change, RemoveDirectory):
        yield ChangedPath(done.target, KeptNode("directory", mode=_mode(done.found)), None)
    elif isinstance(done.change, (Put, Remove, Restore)):
        before, old = _before(blobs, done)
        after, new = _after(blobs, done)
        yield ChangedPath(done.target, before, after, count_lines(old, new))
        if isinstance(done.change, Restore):
            yield from _paths_inside(blobs, done.target, done.change)


def _paths_inside(blobs: Blobs, stem: str, change: Restore) -> Iterator[ChangedPath]:
    for rel, before, after in change.inner_changes():
        texts = [b"" if node is None else node.data if node.kind == "file" else None for node in (before, after)]
        yield ChangedPath(f"{stem}/{rel}", _node(blobs, before), _node(blobs, after), count_lines(*texts))


def _node(blobs: Blobs, node: Node | None) -> KeptNode | None:
    if node is None:
        return None
    kept = blobs.put(node.data) if node.kind == "file" else os.fsdecode(node.data)
    return KeptNode(node.kind, kept, node.mode | stat.S_IRWXU if node.kind == "directory" else node.mode)


def _before(blobs: Blobs, done: CommittedChange) -> tuple[KeptNode | None, bytes | None]:
    """Return the old entry, and its content if that is known."""
    if done.found is None:
        return None, b""
    mode = _mode(done.found)
    if stat.S_ISDIR(done.found.st_mode):
        return KeptNode("directory", mode=mode), None
    if stat.S_ISLNK(done.found.st_mode):
        return KeptNode("link", os.readlink(done.place.name, dir_fd=done.place.dir_fd), mode), None
    base = done.change.base if isinstance(done.change, (Put, Remove, Restore)) else None
    if base is None:
        return KeptNode("file", "", mode), None  # too large or not readable: removed without a copy
    return KeptNode("file", blobs.put(base.data), mode), base.data


def _after(blobs: Blobs, done: CommittedChange) -> tuple[KeptNode | None, bytes | None]:
    """Return the new entry, and its content if it is a file."""
    change = done.change
    if isinstance(change, Put):
        return KeptNode("file", blobs.put(change.data), _mode(done.made)), change.data
    if isinstance(change, Restore) and change.to is not None:
        if change.to.kind != "file":
            return KeptNode(change.to.kind, os.fsdecode(change.to.data), _mode(done.made)), None
        return KeptNode("file", blobs.put(change.to.data), _mode(done.made)), change.to.data
    return None, b""


def _mode(found: os.stat_result | None) -> int:
    return stat.S_IMODE(found.st_mode) if found is not None else 0


def count_lines(old: bytes | None, new: bytes | None) -> tuple[int, int] | None:
    """Return the numbers of lines added and removed; None if a content is too large or unknown."""
    if old is None or new is None or max(len(old), len(new)) > _COUNTED_BYTES:
        return None
    gone, come = map(lines_of, differing(old, new))
    common = not set(gone).isdisjoint(come)
    if not common or len(gone) <= 1 or len(come) <= 1:
        return len(come) - common, len(gone) - common
    spans = changes(gone, come, _DIFF_EFFORT)
    return sum(span[3] - span[2] for span in spans), sum(span[1] - span[0] for span in spans)
