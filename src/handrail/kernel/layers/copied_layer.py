"""Keeps the changes of a workspace in a copy of its root, where the system has no layers."""

import contextlib
import os
import shutil
import stat

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host.scratch import copy_tree
from handrail.kernel.layers.layer_store import LayerRecord, LayerStore
from handrail.kernel.layers.upper import Upper, clear_below
from handrail.kernel.layers.workspace_layer import walk_at

_COPY = "copy"


class CopiedLayer:
    """One open copy. Its workspace works in the copy, under the path of the copy."""

    def __init__(self, store: LayerStore, name: str, boundary: FsBoundary, why: str, most: int) -> None:
        """Open a copy; make it if there is none. Raises LayerBusy, CopyTooLarge and OSError."""
        self.store, self.name, self.why, self._most = store, name, why, most
        self.root_fd = os.dup(boundary.fd)
        self._upper: Upper | None = None
        self.record = LayerRecord(store.root)
        try:
            self._upper, self.record = store.open(name)
            self._fill()
            self.boundary = FsBoundary(self.place)
        except BaseException:
            self.close()
            raise
        boundary.close()

    @property
    def path(self) -> str:
        """The directory of the layer, which also holds the state of its workspace."""
        return self.store.place(self.name)

    @property
    def place(self) -> str:
        """The directory of the copy."""
        return os.path.join(self.path, _COPY)

    def _fill(self) -> None:
        """Copy the root if there is no copy. It gets its name when it is whole."""
        if os.path.isdir(self.place):
            return
        staged = f"{self.place}.new"
        shutil.rmtree(staged, ignore_errors=True)
        copy_tree(self.store.root, staged, self._most)
        os.rename(staged, self.place)

    def changed_paths(self, most: int) -> list[str]:
        """Return the paths whose kind, size, time or mode differ between the root and the copy, sorted."""
        both = {*walk_at(self.root_fd, "", most, ()), *walk_at(self.boundary.fd, "", most, ())}
        return sorted(path for path in both if self._mark(self.root_fd, path) != self._mark(self.boundary.fd, path))

    @staticmethod
    def _mark(fd: int, path: str) -> tuple[int, ...] | None:
        with contextlib.suppress(OSError):
            found = os.stat(path, dir_fd=fd, follow_symlinks=False)
            return (
                (found.st_mode,) if stat.S_ISDIR(found.st_mode) else (found.st_mode, found.st_size, found.st_mtime_ns)
            )
        return None

    def freeze(self, most: int) -> LayerRecord:  # noqa: ARG002  as a layer
        """Return the record for a fork, which copies the copy."""
        return self.record._replace(forked=True)

    def copy_for_fork(self, place: str) -> None:
        """Copy the copy into the directory of another layer."""
        copy_tree(self.place, os.path.join(place, _COPY), self._most)

    def discard(self, since: int) -> None:
        """Forget all changes: copy the root again."""
        assert self._upper is not None  # noqa: S101  it is open
        clear_below(self._upper.fd, _COPY)
        self._fill()
        fresh = FsBoundary(self.place)
        os.dup2(fresh.fd, self.boundary.fd, inheritable=False)
        fresh.close()
        self.record = self.record._replace(since=since)
        self.store.write(self.name, self.record)

    def close(self, *, remove: bool = False) -> None:
        """Give the copy up; with `remove`, forget it."""
        fd, self.root_fd = self.root_fd, -1
        if fd < 0:
            return
        if self._upper is not None:
            self._upper.close()
        os.close(fd)
        if remove:
            self.store.remove(self.name)
