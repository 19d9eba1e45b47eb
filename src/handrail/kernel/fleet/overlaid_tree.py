"""Holds a workspace as an overlay over its tree: opening it copies nothing; its changes have their own directory.

The overlay is mounted in the namespace of this process, a host, and ends with it. `enter` must come before all else.
"""

import os
import stat
from contextlib import suppress

from handrail.kernel.fleet.node_directory import remove_tree
from handrail.kernel.fleet.saved_state import SavedState, apply_state, expect_at_most, is_of_other_kind, write_state
from handrail.kernel.layers.overlay import enter_own_namespaces, mount_here, unmount
from handrail.kernel.layers.upper_entries import entries, is_whiteout
from handrail.model.fleet_limits import TREE_BYTES

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def enter(place: str) -> str:
    """Prepare this process, which has one thread, for overlays; say why it can have none, or nothing.

    Tries one in `place`, an empty directory.
    """
    lower = os.path.join(place, "lower")
    os.mkdir(lower, 0o700)
    try:
        enter_own_namespaces()
        OverlaidTree("", lower, os.path.join(place, "view")).close()
    except OSError as refused:
        return refused.strerror or str(refused)
    finally:
        remove_tree(place)
    return ""


class OverlaidTree:
    """An overlay over a tree, in which one workspace works."""

    def __init__(self, tree: str, tree_path: str, root: str) -> None:
        """Mount an empty layer over the tree with this id. Raises OverlayRefused and OSError."""
        self.tree, self.root = tree, root
        self._tree_path, self._layer = tree_path, f"{root}.layer"
        self._upper = os.path.join(self._layer, "upper")
        for path in (root, self._layer, self._upper, os.path.join(self._layer, "work")):
            os.mkdir(path, 0o700)
        try:
            self._mount()
        except BaseException:
            self._remove()
            raise

    def _mount(self) -> None:
        paths = (self._tree_path, self._upper, os.path.join(self._layer, "work"))
        fds: list[int] = []
        try:
            fds.extend(os.open(path, _DIRECTORY) for path in paths)
            mount_here(fds[:1], fds[1], fds[2], self.root)
        finally:
            for fd in fds:
                os.close(fd)

    def fresh(self, root: str) -> "OverlaidTree":
        """Return another overlay over the same tree, without any change."""
        return OverlaidTree(self.tree, self._tree_path, root)

    def save(self, place: str, most: int = TREE_BYTES) -> SavedState:
        """Write the state into two new files whose names begin with `place`. Raises TreeError if it is larger."""
        deleted, sizes = list[str](), list[int]()
        upper = os.open(self._upper, _DIRECTORY)
        try:
            for name, found, hides in entries(upper):
                sizes.append(found.st_size)
                below = os.path.lexists(os.path.join(self._tree_path, name))
                replaced = stat.S_ISDIR(found.st_mode) or is_of_other_kind(self._tree_path, name, found)
                if is_whiteout(found) or (below and hides and replaced):
                    deleted.append(name)
        finally:
            os.close(upper)
        expect_at_most(most, sizes)
        return write_state(self.tree, self._upper, place, deleted)

    def restore(self, saved: SavedState) -> None:
        """Turn the fresh overlay into a saved state. Raises TreeError if the files are not that state."""
        apply_state(saved, self.tree, self.root)

    def close(self) -> None:
        """Unmount, and remove everything."""
        with suppress(OSError):  # a command cannot unmount it; if it is gone, so much the better
            unmount(self.root)
        self._remove()

    def _remove(self) -> None:
        remove_tree(self.root)
        remove_tree(self._layer)
