"""Keeps unpacked trees on a node: each is verified, unpacked once for all hosts, and deleted when room is needed."""

import fcntl
import os
import secrets
from collections.abc import Callable
from contextlib import suppress

from handrail.kernel.fleet.node_directory import remove_tree
from handrail.kernel.fleet.tree_pack import TreeError, unpack, walk
from handrail.kernel.host.state_dir import locked_directory_of, make_private, read_text, write_text


class TreeCache:
    """Holds the trees of one node. A host locks each tree that it uses, so that no other host deletes the tree."""

    def __init__(self, node: str, most_bytes: int) -> None:
        self._home, self._most = os.path.join(node, "trees"), most_bytes
        make_private(self._home)
        self._held: dict[str, int] = {}

    def has(self, tree: str) -> bool:
        """Say whether a tree is unpacked on this node."""
        return os.path.isdir(self._path(tree))

    def use(self, tree: str, fetch: Callable[[], str]) -> str:
        """Return the directory of a tree; unpack it first, from the file that `fetch` returns, if it is not here."""
        with locked_directory_of(self._path(tree)):
            self._hold(tree)
            if not self.has(tree):
                self._unpack(tree, fetch())
                self._make_room()
            os.utime(self._path(tree))
        return self._path(tree)

    def _unpack(self, tree: str, source: str) -> None:
        staging = os.path.join(self._home, f"{tree}.{secrets.token_hex(4)}.new")
        os.mkdir(staging, 0o700)
        try:
            unpack(source, staging, expected=tree)
            size = sum(facts.st_blocks * 512 for _, facts in walk(staging))
            write_text(self._path(tree) + ".size", str(size))
            os.rename(staging, self._path(tree))
        except BaseException:
            remove_tree(staging)
            raise

    def _hold(self, tree: str) -> None:
        if tree not in self._held:
            fd = os.open(self._path(tree) + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_SH)
            self._held[tree] = fd

    def _make_room(self) -> None:
        """Delete what killed hosts left half-unpacked, and the trees that were not used for longest."""
        for name in os.listdir(self._home):
            if name.endswith(".new"):  # only this process unpacks now
                remove_tree(os.path.join(self._home, name))
        trees = sorted((name for name in os.listdir(self._home) if "." not in name), key=self._last_use)
        sizes = {tree: int(read_text(self._path(tree) + ".size") or 0) for tree in trees}
        total = sum(sizes.values())
        for tree in trees:
            if total <= self._most:
                return
            if tree not in self._held and self._deleted(tree):
                total -= sizes[tree]

    def _deleted(self, tree: str) -> bool:
        """Delete a tree that no host uses."""
        fd = os.open(self._path(tree) + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_tree(self._path(tree))
            for end in (".size", ".lock"):
                with suppress(FileNotFoundError):
                    os.unlink(self._path(tree) + end)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return True

    def _last_use(self, tree: str) -> float:
        return os.stat(self._path(tree)).st_mtime

    def _path(self, tree: str) -> str:
        if not tree.isalnum():
            raise TreeError(f"{tree!r} is not a tree")
        return os.path.join(self._home, tree)

    def close(self) -> None:
        """Give up the locks of this host."""
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()
