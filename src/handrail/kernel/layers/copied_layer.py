"""Keeps the changes of a workspace in a copy of its root, where the system has no layers."""

import json
import os
import shutil
import stat
import sys

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host.scratch import copy_tree
from handrail.kernel.host.state_dir import read_text, write_whole
from handrail.kernel.layers.layer_store import LayerRecord, LayerStore
from handrail.kernel.layers.upper import Upper, clear
from handrail.kernel.layers.workspace_layer import stat_at, walk_at
from handrail.model.paths import quote, unquote

_COPY, _OLD, _MARKS = "copy", "copy.old", "copied.json"
_Mark = tuple[int, int, int]


class CopiedLayer:
    """Holds one open copy. Its workspace works in the copy, under the path of the copy."""

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
        """Copy the root if there is no copy. It gets its name when it is whole, and its marks are written."""
        clear(os.path.join(self.path, _OLD))
        if not os.path.isdir(self.place):
            self._copy()
        found = json.loads(read_text(os.path.join(self.path, _MARKS)))
        self._marks: dict[str, _Mark] = {unquote(path): tuple(mark) for path, mark in found.items()}
        """Kind, size, time and mode of each path as they were copied."""

    def _copy(self) -> None:
        staged = f"{self.place}.new"
        clear(staged)
        copy_tree(self.store.root, staged, self._most)
        fd = os.open(staged, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            marks = {quote(path): _mark(fd, path) for path in walk_at(fd, "", sys.maxsize, ())}
        finally:
            os.close(fd)
        write_whole(os.path.join(self.path, _MARKS), json.dumps(marks).encode(), sync=False)
        os.rename(staged, self.place)

    def changed_paths(self, most: int) -> list[str]:
        """Return the paths whose kind, size, time or mode changed in the copy, sorted."""
        paths = {*self._marks, *walk_at(self.boundary.fd, "", most, ())}
        return sorted(path for path in paths if _mark(self.boundary.fd, path) != self._marks.get(path))

    def root_changed(self, path: str) -> bool:
        """Return whether what the root has at a path changed since it was copied."""
        now = _mark(self.root_fd, path)
        return now is not None and now != self._marks.get(path)

    def freeze(self, most: int) -> LayerRecord:  # noqa: ARG002  as a layer
        """Return the record for a fork, which copies the copy."""
        return self.record._replace(forked=True)

    def copy_for_fork(self, place: str) -> None:
        """Copy the copy into the directory of another layer."""
        shutil.copyfile(os.path.join(self.path, _MARKS), os.path.join(place, _MARKS))
        copy_tree(self.place, os.path.join(place, _COPY), self._most)

    def discard(self, since: int) -> None:
        """Forget all changes: copy the root again."""
        assert self._upper is not None  # noqa: S101  it is open
        os.rename(self.place, os.path.join(self.path, _OLD))
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


def _mark(fd: int, path: str) -> _Mark | None:
    """Return what a change of a path changes; of a directory only the mode. None if nothing is there."""
    found = stat_at(fd, path)
    if found is None:
        return None
    mode = found.st_mode & ~(stat.S_ISUID | stat.S_ISGID)
    return (mode, 0, 0) if stat.S_ISDIR(mode) else (mode, found.st_size, found.st_mtime_ns)
