"""Holds a workspace as a full copy of its tree, for machines without overlays; finds what differs from the tree.

A file differs if its size, its inode or one of its times does: no command can set the time of the last change of an
inode.
"""

import os
import stat

from handrail.kernel.fleet.node_directory import remove_tree
from handrail.kernel.fleet.saved_state import SavedState, apply_state, expect_at_most, is_of_other_kind, write_state
from handrail.kernel.fleet.tree_pack import walk
from handrail.model.fleet_limits import TREE_BYTES

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409

Facts = tuple[int, ...]


class CopiedTree:
    """A copy of a tree, in which one workspace works."""

    def __init__(self, tree: str, tree_path: str, root: str) -> None:
        """Copy the tree with this id."""
        self.tree, self.root = tree, root
        self._tree_path = tree_path
        copy_tree(tree_path, root)
        self._first: dict[str, Facts] = {name: _facts(found) for name, found in walk(root)}

    def fresh(self, root: str) -> "CopiedTree":
        """Return another copy of the same tree, without any change."""
        return CopiedTree(self.tree, self._tree_path, root)

    def save(self, place: str, most: int = TREE_BYTES) -> SavedState:
        """Write the state into two new files whose names begin with `place`. Raises TreeError if it is larger."""
        now = dict(walk(self.root))
        changed = {name for name, found in now.items() if self._first.get(name) != _facts(found)}
        expect_at_most(most, (now[name].st_size for name in changed))
        gone = {name for name in self._first if name not in now}
        replaced = changed & self._first.keys()
        gone |= {name for name in replaced if is_of_other_kind(self._tree_path, name, now[name])}
        return write_state(self.tree, self.root, place, gone, changed.__contains__)

    def restore(self, saved: SavedState) -> None:
        """Turn the fresh copy of the tree into a saved state. Raises TreeError if the files are not that state."""
        apply_state(saved, self.tree, self.root)
        now = {name: _facts(found) for name, found in walk(self.root)}
        self._first = {name: facts if now.get(name) == facts else () for name, facts in self._first.items()}

    def close(self) -> None:
        """Remove the copy."""
        remove_tree(self.root)


def _facts(found: os.stat_result) -> Facts:
    if stat.S_ISDIR(found.st_mode):
        return (found.st_mode,)
    return (found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def copy_tree(source: str, target: str) -> None:
    """Copy a directory into a new one; share the blocks where the file system can."""
    os.mkdir(target, 0o700)
    modes = []
    for name, found in walk(source):
        old, new = os.path.join(source, name), os.path.join(target, name)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(new, 0o700)
            modes.append((new, stat.S_IMODE(found.st_mode)))
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(old), new)
        else:
            _copy_file(old, new, found)
    for path, mode in reversed(modes):
        os.chmod(path, mode)


def _copy_file(source: str, target: str, found: os.stat_result) -> None:
    import fcntl  # noqa: PLC0415  POSIX only

    reading, writing = os.open(source, _READ), os.open(target, _NEW, 0o600)
    try:
        try:
            fcntl.ioctl(writing, _FICLONE, reading)
        except OSError:
            while os.copy_file_range(reading, writing, 1 << 30):
                pass
        os.utime(writing, ns=(found.st_mtime_ns, found.st_mtime_ns))
        os.fchmod(writing, stat.S_IMODE(found.st_mode) & 0o777)
    finally:
        os.close(reading)
        os.close(writing)
