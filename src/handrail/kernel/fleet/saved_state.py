"""Writes what differs between a workspace and its tree into two files, and turns a fresh workspace into that state.

The files are a pack of the entries that differ, and a text that names the tree and what is deleted. They do not depend
on how a workspace lies over its tree, so a state that was saved on one node can be restored on any other.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, Self

from handrail.kernel.fleet.tree_pack import TreeError, content_id, pack, remove_entries, unpack
from handrail.kernel.host.state_dir import read_text, write_text
from handrail.model.fleet_limits import TREE_BYTES


class SavedState(NamedTuple):
    """Names a saved state: its id, and the files that hold it."""

    id: str
    pack: str
    about: str


class TreeCopy(Protocol):
    """The place of one workspace over its tree: an overlay, or a copy."""

    root: str

    def fresh(self, root: str) -> Self:
        """Return another place over the same tree, without any change."""

    def save(self, place: str, most: int = TREE_BYTES) -> SavedState:
        """Write the state into two new files whose names begin with `place`. Raises TreeError if it is larger."""

    def restore(self, saved: SavedState) -> None:
        """Turn this fresh place into a saved state. Raises TreeError if the files are not that state."""

    def close(self) -> None:
        """Remove everything."""


def forked(parent: TreeCopy, root: str, place: str) -> TreeCopy:
    """Return a place with the state of another one, in which no command may run. `place` names files for a moment."""
    saved = parent.save(place)
    try:
        made = parent.fresh(root)
        try:
            made.restore(saved)
        except BaseException:
            made.close()
            raise
    finally:
        for path in (saved.pack, saved.about):
            os.unlink(path)
    return made


def expect_at_most(most: int, sizes: Iterable[int]) -> None:
    """Refuse a state that is too large, before any of it is packed. Raises TreeError."""
    if sum(sizes) > most:
        raise TreeError(f"the changes have more than {most} bytes")


def write_state(
    tree: str, source: str, place: str, deleted: Iterable[str], only: Callable[[str], bool] | None = None
) -> SavedState:
    """Write the entries below a directory, or some of them, and the names of deleted ones, into two new files."""
    pieces = pack(source, f"{place}.tar", only)
    about = json.dumps({"tree": tree, "deleted": sorted(deleted), "pieces": content_id(pieces)})
    write_text(f"{place}.json", about)
    return SavedState(hashlib.sha256(about.encode()).hexdigest(), f"{place}.tar", f"{place}.json")


def apply_state(saved: SavedState, tree: str, root: str) -> None:
    """Turn a fresh workspace of a tree into a saved state. Raises TreeError if the files are not that state."""
    about = read_text(saved.about)
    found = json.loads(about)
    if hashlib.sha256(about.encode()).hexdigest() != saved.id or found["tree"] != tree:
        raise TreeError(f"the files do not hold the state {saved.id}")
    remove_entries(root, found["deleted"])
    unpack(saved.pack, root, expected=found["pieces"], over=True)


def is_of_other_kind(tree_path: str, name: str, found: os.stat_result) -> bool:
    """Say whether an entry is a file, a link or a directory, and the one of the tree something else, or nothing."""
    try:
        before = os.lstat(os.path.join(tree_path, name))
    except OSError:
        return True
    return stat.S_IFMT(before.st_mode) != stat.S_IFMT(found.st_mode)
