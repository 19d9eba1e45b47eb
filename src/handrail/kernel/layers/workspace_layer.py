"""Opens the layer of one workspace: its changes over a root that nothing changes, and the view of both."""

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.small_files import FILE, open_file
from handrail.kernel.layers.layer_store import LayerRecord, LayerStore
from handrail.kernel.layers.overlay import Mount

if TYPE_CHECKING:
    from handrail.kernel.layers.layer_archive import About
    from handrail.kernel.layers.upper import Upper
    from handrail.kernel.sandbox.view.image_root import ImageRoot

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceLayer:
    """Holds one open layer, and shows the view through the boundary of its workspace, whose handle keeps its number."""

    why = ""
    """Why it is a copy: it is none."""

    def __init__(self, store: LayerStore, name: str, boundary: FsBoundary) -> None:
        """Open and mount a layer; make it if there is none. Raises LayerBusy, OverlayRefused and OSError."""
        self.store, self.name, self.boundary = store, name, boundary
        self.root_fd = os.dup(boundary.fd)
        """The root itself, without the layer."""
        self._below: Mount | None = None
        self._mount: Mount | None = None
        self._upper: Upper | None = None
        self.image: ImageRoot | None = None
        """The view of a container image; None for a layer over a directory."""
        self.record = LayerRecord(store.root)
        self.mounted = time.time_ns()
        """A moment before the view was mounted. What changed in the root since then, the view may show as it was."""
        try:
            self._upper, self.record = store.open(name)
            self._show()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The directory of the layer, which also holds the state of its workspace."""
        return self.store.place(self.name)

    @property
    def is_whole_root(self) -> bool:
        """True if the layers below are the root alone."""
        return not self.record.frozen

    def _show(self) -> None:
        assert self._upper is not None  # noqa: S101  opened above
        with self.lowers() as lowers:
            self._mount = self._upper.mount(lowers, self.store.root)
        self.boundary.show(self._mount.fd)

    @contextlib.contextmanager
    def lowers(self) -> Iterator[list[int]]:
        """Open the layers below for the time of the block, the top one first."""
        with contextlib.ExitStack() as stack:
            found: list[int] = []
            for each in self.record.frozen:
                found.append(os.open(os.path.join(self.store.frozen(each), "upper"), _DIRECTORY))
                stack.callback(os.close, found[-1])
            yield [*found, self.root_fd]

    @contextlib.contextmanager
    def upper(self) -> Iterator[int]:
        """Open the directory with the changes for the time of the block."""
        assert self._upper is not None  # noqa: S101  it is open
        with self._upper.upper() as fd:
            yield fd

    @contextlib.contextmanager
    def all_uppers(self) -> Iterator[list[int]]:
        """Open all directories over the root for the time of the block, the top one first."""
        with self.upper() as upper, self.lowers() as lowers:
            yield [upper, *lowers[:-1]]

    def enter(self, user: tuple[int, int] | None) -> list[str]:
        """Return the command that enters the view, to stand before a program; see `Mount.entering`."""
        assert self._mount is not None  # noqa: S101  it is open
        return self._mount.entering(user)

    def freeze(self, most: int) -> LayerRecord:
        """Freeze the changes, so that forks can share them, and go on over them. Call it under the store's lock.

        Nothing may run in the view. Returns the record for a fork.
        """
        assert self._upper is not None  # noqa: S101  it is open
        if self._upper.is_empty():
            return self.record._replace(forked=True)
        self._unmount()
        try:
            self.record = self.store.freeze(self._upper, self.name, most)
        except BaseException:
            self.record = self.store.settled(self._upper, self.name)
            raise
        finally:
            self._show()
        return self.record._replace(forked=True)

    def discard(self, since: int) -> None:
        """Forget all changes, frozen ones included. Nothing may run in the view. `since` is the last journal entry."""
        assert self._upper is not None  # noqa: S101  it is open
        with self.store.locked():
            self._unmount()
            try:
                self.record = self.store.forget(self._upper, self.name, since)
            except BaseException:
                self.record = self.store.settled(self._upper, self.name)
                raise
            finally:
                self._show()
        self.store.sweep()

    @contextlib.contextmanager
    def frozen(self, most: int) -> Iterator[int]:
        """Freeze the changes, and open one directory with all of them for the time of the block.

        Nothing may run in the view before the block.
        """
        with self.store.locked():
            self.freeze(most)
            flat = self.store.flat(self.record)
            place = self.path if flat is None else self.store.frozen(flat)
            fd = os.open(os.path.join(place, "upper"), _DIRECTORY)
            try:
                yield fd
            finally:
                os.close(fd)

    def about(self) -> "About":
        """Return what a snapshot says about the layers below."""
        from handrail.kernel.layers.content_id import content_id  # noqa: PLC0415  for snapshots only
        from handrail.kernel.layers.layer_archive import About  # noqa: PLC0415  for snapshots only

        return About(self.store.root, content_id(self.root_fd, f"{self.store.path}/digests.json"))

    def _unmount(self) -> None:
        nothing = os.open("/dev/null", _NAME)
        self.boundary.show(nothing)  # whatever goes wrong from here, no call reaches the root itself
        os.close(nothing)
        for mount in (self._mount, self._below):
            if mount is not None:
                mount.close()
        self._mount = self._below = None
        self.mounted = time.time_ns()

    def close(self, *, remove: bool = False) -> None:
        """Unmount and give the layer up; with `remove`, forget it."""
        fd, self.root_fd = self.root_fd, -1
        if fd < 0:
            return
        for mount in (self._mount, self._below):
            if mount is not None:
                mount.close()
        self._mount = self._below = None
        if self._upper is not None:
            self._upper.close()
        os.close(fd)
        if remove:
            self.store.remove(self.name)

    @property
    def own(self) -> frozenset[str]:
        """The paths that Handrail itself makes in the view, which are no changes."""
        return frozenset()

    def root_view(self) -> int:
        """Return the root itself, without the layer and those below it; valid as long as the layer."""
        return self.root_fd

    def root_changed(self, path: str) -> bool:
        """Return whether what the root has at a path changed since the layer was empty."""
        found = stat_at(self.root_fd, path)
        return found is not None and found.st_ctime_ns > self.record.began

    # the layers below

    def below(self) -> int:
        """Return the view of the layers below; valid until the next fork."""
        if self.is_whole_root:
            return self.root_fd
        if self._below is None:
            with self.lowers() as lowers:
                self._below = Mount.make(lowers, None, None, self.store.root)
        return self._below.fd

    def content_below(self, path: str, most: int) -> bytes | None:
        """Return the content of a file below the layer, or the target of a link; None if it is longer than `most`."""
        return content_at(self.below(), path, most)

    def walk_below(self, path: str, most: int, without: tuple[str, ...], *, shown: bool = False) -> Iterator[str]:
        """Yield at most `most` paths inside a directory below the layer, not entering directories with some names.

        With `shown`, the paths of these directories come, too. Reads names only.
        """
        yield from walk_at(self.below(), path, most, without, shown=shown)


def stat_at(root_fd: int, path: str) -> os.stat_result | None:
    """Return what is known about a path below a root, without following a link; None if nothing is there."""
    try:
        fd = open_file(root_fd, path, _NAME)
    except OSError:
        return None
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def content_at(root_fd: int, path: str, most: int) -> bytes | None:
    """Return the content of a file below a root, or the target of a link; None if it is too long or unreadable."""
    try:
        name = open_file(root_fd, path, _NAME)
    except OSError:
        return None
    try:
        found = os.fstat(name)
        if stat.S_ISLNK(found.st_mode):
            return os.readlink(b"", dir_fd=name)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with open(os.open(f"/proc/self/fd/{name}", FILE & ~os.O_NOFOLLOW), "rb") as file:
            data = file.read(most + 1)
            return data if len(data) <= most else None
    except OSError:
        return None
    finally:
        os.close(name)


def walk_at(root_fd: int, path: str, most: int, without: tuple[str, ...], *, shown: bool = False) -> Iterator[str]:
    """Yield the paths inside a directory below a root; see `WorkspaceLayer.walk_below`."""
    try:
        top = open_file(root_fd, path, _DIRECTORY) if path else os.dup(root_fd)
    except OSError:
        return
    stack, count = [(f"{path}/" if path else "", top)], 0
    try:
        while stack and count < most:
            stem, fd = stack.pop()
            try:
                with os.scandir(fd) as listed:
                    for entry in listed:
                        is_directory = entry.is_dir(follow_symlinks=False)
                        left_out = is_directory and entry.name in without
                        if not left_out or shown:
                            yield stem + entry.name
                        if is_directory and not left_out:
                            with contextlib.suppress(OSError):  # deleted meanwhile, or not readable
                                stack.append((f"{stem}{entry.name}/", os.open(entry.name, _DIRECTORY, dir_fd=fd)))
                        count += 1
            finally:
                os.close(fd)
    finally:
        for _, fd in stack:
            os.close(fd)
