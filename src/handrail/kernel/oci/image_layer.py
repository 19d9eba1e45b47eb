"""Opens the layer of one workspace over the layers of a container image: its changes, and the view of all."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host.state_dir import make_private
from handrail.kernel.layers.layer_store import LayerStore
from handrail.kernel.layers.overlay import Mount
from handrail.kernel.layers.upper import clear
from handrail.kernel.layers.workspace_layer import WorkspaceLayer
from handrail.kernel.oci.image_manifest import Image
from handrail.kernel.oci.layer_cache import CachedLayer, visible_layers
from handrail.kernel.sandbox.view.image_root import (
    OWN_PATHS,
    ImageRefused,
    ImageRoot,
    existing_directory,
    find_shell,
    real_directory,
    user_of,
)
from handrail.model.paths import stem_of

if TYPE_CHECKING:
    from handrail.kernel.layers.layer_archive import About

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_VIEW = "view"
"""The directory of a layer at which its view is mounted, in a namespace of its own; elsewhere it is empty."""
COMMIT = "commit-"
"""How the names of directories begin that a commit needs for a moment."""


def image_store(image: Image, workdir: str) -> LayerStore:
    """Return the store of the layers over an image with a working directory. Raises OSError."""
    return LayerStore(f"{image.digest}:{workdir}")


class ImageLayer(WorkspaceLayer):
    """Holds one open layer over an image.

    The view is the whole image. The workspace is one directory in it, and so are the parts of the layers that the
    journal compares. A command may put a link in the place of this directory: then they are empty, and no link of the
    image is ever followed on the host.
    """

    def __init__(
        self, name: str, boundary: FsBoundary, image: Image, cached: Sequence[CachedLayer], workdir: str, *, kept: bool
    ) -> None:
        """Open and mount a layer; make it if there is none. The boundary shows the working directory of the image.

        Without `kept`, a layer that was not made by a fork is removed when it closes, too. Raises ImageRefused,
        LayerBusy, OverlayRefused and OSError.
        """
        self.source, self.workdir = image, workdir
        self.cached = [*cached]
        self._held = contextlib.ExitStack()
        self._bases = [self._opened(each.tree) for each in visible_layers(cached)]
        self._root_view: int | None = None
        self._below_view: int | None = None
        try:
            super().__init__(image_store(image, workdir), name, boundary)
            for left in os.listdir(self.path):
                if left.startswith(COMMIT):  # its process was killed
                    clear(os.path.join(self.path, left))
            if not kept and not self.record.forked:
                self.record = self.record._replace(forked=True)
                self.store.write(name, self.record, sync=False)
        except BaseException:
            self._held.close()
            raise

    def _opened(self, path: str) -> int:
        fd = os.open(path, _DIRECTORY)
        self._held.callback(os.close, fd)
        return fd

    @property
    def view(self) -> int:
        """The root of the image, as commands see it."""
        assert self._mount is not None  # noqa: S101  it is open
        return self._mount.fd

    @property
    def is_whole_root(self) -> bool:
        """False: the layers below are never one directory of the host."""
        return False

    @property
    def own(self) -> frozenset[str]:
        """What Handrail makes for commands, relative to the working directory."""
        stem = stem_of(self.workdir)
        return frozenset(path.removeprefix(stem) for path in OWN_PATHS if path.startswith(stem))

    def _show(self) -> None:
        assert self._upper is not None  # noqa: S101  opened before
        at = os.path.join(self.path, _VIEW)
        make_private(at)
        with self.lowers() as lowers:
            self._mount = self._upper.mount(lowers, at)
        here = (
            real_directory(self._mount.fd, self.workdir.strip("/")) if self.workdir != "/" else os.dup(self._mount.fd)
        )
        try:
            os.fchmod(here, os.fstat(here).st_mode & 0o7777)  # copies it up, so that the upper always has it
            self.boundary.show(here, self.workdir)
        finally:
            os.close(here)
        settings = self.source.config
        variables = dict(each.split("=", 1) for each in settings.environment)
        self.image = ImageRoot(at, self._mount.fd, variables, *user_of(settings.user), find_shell(self._mount.fd))

    @contextlib.contextmanager
    def lowers(self) -> Iterator[list[int]]:
        """Open the layers below for the time of the block, the top one first."""
        with self._frozen() as frozen:
            yield [*frozen, *self._bases]

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[list[int]]:
        with contextlib.ExitStack() as stack:
            found: list[int] = []
            for each in self.record.frozen:
                found.append(os.open(os.path.join(self.store.frozen(each), "upper"), _DIRECTORY))
                stack.callback(os.close, found[-1])
            yield found

    @contextlib.contextmanager
    def upper(self) -> Iterator[int]:
        """Open the changes in the working directory for the time of the block."""
        with super().upper() as whole, self._part(whole) as fd:
            yield fd

    @contextlib.contextmanager
    def all_uppers(self) -> Iterator[list[int]]:
        """Open the changes in the working directory for the time of the block, the top ones first."""
        with self.upper() as upper, self._frozen() as frozen, contextlib.ExitStack() as stack:
            yield [upper, *(stack.enter_context(self._part(each)) for each in frozen)]

    def upper_paths(self) -> list[str]:
        """Return the directories with all changes of the image, the top one first."""
        return [f"{self.path}/upper", *(f"{self.store.frozen(each)}/upper" for each in self.record.frozen)]

    @contextlib.contextmanager
    def _part(self, whole: int) -> Iterator[int]:
        """Open the working directory below a layer; an empty directory if the layer has none."""
        fd = self._working(whole)
        try:
            yield fd
        finally:
            os.close(fd)

    def _working(self, top: int) -> int:
        try:
            return existing_directory(top, self.workdir.strip("/"))
        except ImageRefused:
            return os.open(os.path.join(self.path, _VIEW), _DIRECTORY)

    def below(self) -> int:
        """Return the working directory in the layers below; valid until the next fork."""
        if not self.record.frozen:
            return self.root_view()
        if self._below_view is None:
            with self.lowers() as lowers:
                self._below_view = self._seen_in(lowers)
        return self._below_view

    def root_view(self) -> int:
        """Return the working directory in the image itself."""
        if self._root_view is None:
            self._root_view = self._seen_in(self._bases)
        return self._root_view

    def _seen_in(self, layers: list[int]) -> int:
        """Open the working directory in the view of layers that do not change; the handle keeps the view."""
        if len(layers) == 1:  # the system mounts no single layer
            return self._working(layers[0])
        with Mount.make(layers, None, None, os.path.join(self.path, _VIEW)) as mount:
            return self._working(mount.fd)

    def about(self) -> "About":
        """Return what a snapshot says about the image."""
        from handrail.kernel.layers.layer_archive import About  # noqa: PLC0415  for snapshots only

        return About(self.source.name, self.source.digest, self.workdir)

    def _unmount(self) -> None:
        self._forget_below()
        super()._unmount()

    def close(self, *, remove: bool = False) -> None:
        """Unmount and give the layer up; with `remove`, forget it. The layers of the image stay in the cache."""
        self._forget_below()
        if self._root_view is not None:
            os.close(self._root_view)
            self._root_view = None
        super().close(remove=remove)
        self._held.close()

    def _forget_below(self) -> None:
        if self._below_view is not None:
            os.close(self._below_view)
            self._below_view = None
