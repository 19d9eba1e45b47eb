"""Holds a workspace as a full copy of its tree, for machines without overlays; saves what differs from the tree.

A saved state is a pack of the entries that differ, and a file that names its tree and what is deleted. A file differs
if its size, its inode or one of its times does: no command can set the time of the last change of an inode.
"""

import hashlib
import json
import os
import stat
from typing import NamedTuple

from handrail.kernel.fleet.tree_pack import TreeError, content_id, pack, remove_entries, unpack, walk
from handrail.kernel.host.state_dir import read_text, write_text

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409

Facts = tuple[int, ...]


class SavedState(NamedTuple):
    """Names a saved state: its id, and the files that hold it."""

    id: str
    pack: str
    about: str


class CopiedTree:
    """A copy of a tree, in which one workspace works."""

    def __init__(self, tree: str, tree_path: str, root: str, parent: "CopiedTree | None" = None) -> None:
        """Copy the tree with this id, or the present state of a parent of the same tree, in which no command runs."""
        self.tree, self.root = tree, root
        self._tree_path = tree_path
        copy_tree(parent.root if parent else tree_path, root)
        now = {name: _facts(found) for name, found in walk(root)}
        self._first = parent.first_of(now) if parent else now

    def fork(self, root: str) -> "CopiedTree":
        """Return a copy of the present state, below the same tree. No command may run meanwhile."""
        return CopiedTree(self.tree, self._tree_path, root, self)

    def first_of(self, copied: dict[str, Facts]) -> dict[str, Facts]:
        """Return the facts that a copy of the present state has for entries as in the tree; none for the others."""
        changed, _ = self._changes()
        same = self._first.keys() & copied.keys() - changed
        return {name: copied[name] if name in same else () for name in self._first}

    def save(self, place: str) -> SavedState:
        """Write the state into two new files whose names begin with `place`."""
        changed, deleted = self._changes()
        pieces = pack(self.root, f"{place}.tar", changed.__contains__)
        about = json.dumps({"tree": self.tree, "deleted": deleted, "pieces": content_id(pieces)})
        write_text(f"{place}.json", about)
        return SavedState(hashlib.sha256(about.encode()).hexdigest(), f"{place}.tar", f"{place}.json")

    def restore(self, saved: SavedState) -> None:
        """Turn the fresh copy of the tree into a saved state. Raises TreeError if the files are not that state."""
        about = read_text(saved.about)
        found = json.loads(about)
        if hashlib.sha256(about.encode()).hexdigest() != saved.id or found["tree"] != self.tree:
            raise TreeError(f"the files do not hold the state {saved.id}")
        remove_entries(self.root, found["deleted"])
        unpack(saved.pack, self.root, expected=found["pieces"], over=True)
        now = {name: _facts(found) for name, found in walk(self.root)}
        self._first = {name: facts if now.get(name) == facts else () for name, facts in self._first.items()}

    def _changes(self) -> tuple[set[str], list[str]]:
        """Return the entries that differ from the tree, and those of the tree that are gone or of another kind."""
        now = dict(walk(self.root))
        changed = {name for name, found in now.items() if self._first.get(name) != _facts(found)}
        gone = {name for name in self._first if name not in now}
        gone |= {name for name in changed & self._first.keys() if self._other_kind(name, now[name])}
        return changed, sorted(gone)

    def _other_kind(self, name: str, found: os.stat_result) -> bool:
        try:
            before = os.lstat(os.path.join(self._tree_path, name))
        except OSError:
            return True
        return stat.S_IFMT(before.st_mode) != stat.S_IFMT(found.st_mode)


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
