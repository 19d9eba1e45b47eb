"""Keeps the unpacked layers of images, each once, under the digest of its archive.

    images/                 private to the user
    ├── layers/HEX/tree     the files of a layer; it appears whole, by a rename
    ├── layers/HEX/facts    its size, and whether it hides everything below it
    ├── staging/HEX         a layer that is being unpacked, or removed
    ├── locks/HEX           held by the process that unpacks or removes this layer
    └── known/HEX           an image that was used: its name and its layers

A killed process leaves its staging directory behind. The next process that holds the lock of this layer, or `prune`,
removes it. A process that uses a layer holds a shared lock on its directory, so that `prune` leaves it alone.
"""

import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from handrail.errors import ImageError
from handrail.kernel.fs.syscalls import can_sync_whole, sync_whole
from handrail.kernel.host.state_dir import make_private, read_small_text, state_home, write_whole
from handrail.kernel.oci.blob_stream import BlobStream
from handrail.kernel.oci.image_manifest import Image, LayerSource
from handrail.kernel.oci.layer_tree import LayerTree
from handrail.kernel.oci.refusal import refused, shown
from handrail.kernel.oci.tar_entries import TarEntries
from handrail.model.limits import DAY, KIB, MIB, Limits

_ROOMS = ("layers", "staging", "locks", "known")
_HEX = len("sha256:")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMED = re.compile("[0-9a-f]{64}")
_FACTS_BYTES, _KNOWN_BYTES = 4 * KIB, MIB


class CachedLayer(NamedTuple):
    """Holds an unpacked layer in use. Its handle holds the shared lock; the caller closes it."""

    diff_id: str
    tree: str
    """The path of its files."""
    fd: int
    hides_all: bool
    size: int
    unpacked: bool
    """True if this call unpacked it; False if it was in the cache."""


class KnownImage(NamedTuple):
    """Describes an image that was unpacked: how the user named it, its layers, and when it was last used."""

    digest: str
    name: str
    layers: tuple[str, ...]
    size: int
    """The bytes of its layers; several images may share some of them."""
    complete: bool
    """False if a layer was removed."""
    used: float
    """In seconds since 1970."""


class LayerCache:
    """Holds the unpacked layers of one user. Any number of processes may use it at once."""

    def __init__(self, limits: Limits) -> None:
        """Open the cache. Raises ImageError if another user could have changed it."""
        self._limits = limits
        self.path = os.path.join(state_home(), "images")
        for room in _ROOMS:
            try:
                make_private(os.path.join(self.path, room))
            except OSError as error:
                raise ImageError(f"images cannot be kept in {self.path}: {error.strerror}") from None
        for place in (os.path.dirname(self.path), self.path, *(self._at(room) for room in _ROOMS)):
            _refuse_foreign(place, private=place != os.path.dirname(self.path))

    def _at(self, *names: str) -> str:
        return os.path.join(self.path, *names)

    # using

    @contextmanager
    def layers(self, image: Image) -> Iterator[list[CachedLayer]]:
        """Yield the layers of an image, the lowest first; unpack the missing ones. Raises ImageError."""
        held: list[CachedLayer] = []
        try:
            for number, layer in enumerate(image.layers, 1):
                held.append(self._layer(layer, f"layer {number} of {image.what}"))
            self._remember(image)
            yield held
        finally:
            for each in held:
                os.close(each.fd)

    def _layer(self, layer: LayerSource, what: str) -> CachedLayer:
        digits = layer.diff_id[_HEX:]
        while True:
            found = self._held(digits, layer.diff_id, unpacked=False)
            if found is not None:
                return found
            with self._locked(digits):
                if os.path.isdir(self._at("layers", digits)):
                    continue  # another process was faster
                try:
                    self._unpack(layer, digits, what)
                except OSError as error:
                    raise ImageError(f"{what} cannot be unpacked: {error.strerror}") from None
                found = self._held(digits, layer.diff_id, unpacked=True)
                if found is not None:
                    return found

    def _held(self, digits: str, diff_id: str, *, unpacked: bool) -> CachedLayer | None:
        """Open a layer and lock it against removal; None if it is not in the cache, or is being removed."""
        place = self._at("layers", digits)
        try:
            fd = os.open(place, _DIRECTORY)
        except FileNotFoundError:
            return None
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                raise ImageError(f"{place} belongs to another user")
            fcntl.flock(fd, fcntl.LOCK_SH)
            if not _is_still(place, fd):
                os.close(fd)
                return None
            facts = json.loads(read_small_text(f"{place}/facts", _FACTS_BYTES))
            tree = f"{place}/tree"
            return CachedLayer(diff_id, tree, fd, facts["hides_all"], facts["bytes"], unpacked)
        except BaseException:
            os.close(fd)
            raise

    # unpacking

    def _unpack(self, layer: LayerSource, digits: str, what: str) -> None:
        """Unpack a layer under its lock: stage it, check both digests, sync it, and give it its name."""
        staging = self._at("staging", digits)
        _remove(staging)
        os.mkdir(staging, 0o700)
        try:
            size, hides_all = self._fill(f"{staging}/tree", layer, what)
            write_whole(f"{staging}/facts", json.dumps({"bytes": size, "hides_all": hides_all}).encode(), sync=False)
            _sync(staging)
            os.rename(staging, self._at("layers", digits))
        except BaseException:
            _remove(staging)
            raise

    def _fill(self, tree: str, layer: LayerSource, what: str) -> tuple[int, bool]:
        os.mkdir(tree, 0o755)
        root = os.open(tree, _DIRECTORY)
        try:
            os.fchmod(root, 0o755)
            stream = BlobStream(layer.blob, what, self._limits.oci_layer_bytes)
            entries = TarEntries(stream, what, self._limits, self._limits.oci_layer_bytes)
            made = LayerTree(root, what, self._limits)
            size = 0
            try:
                for entry in entries:
                    made.add(entry, entries.content())
                    size += entry.size
            finally:
                made.close()
            blob, diff = stream.finish()
            if layer.digest not in (None, blob):
                raise refused(what, f"its blob has the digest {blob}, not {layer.digest}")
            if diff != layer.diff_id:
                raise refused(what, f"its archive has the digest {diff}, not {layer.diff_id}")
            return size, made.hides_all
        finally:
            os.close(root)

    def _remember(self, image: Image) -> None:
        about = {"name": image.name, "layers": [each.diff_id for each in image.layers]}
        write_whole(self._at("known", image.digest[_HEX:]), json.dumps(about).encode(), sync=False)

    # listing and pruning

    def known(self) -> list[KnownImage]:
        """Return the images that were unpacked, the last used first."""
        found = []
        for digits in filter(_NAMED.fullmatch, sorted(os.listdir(self._at("known")))):
            path = self._at("known", digits)
            with suppress(OSError, ValueError, KeyError, TypeError):  # another process removes or writes it now
                about = json.loads(read_small_text(path, _KNOWN_BYTES))
                sizes = [self._size(each) for each in about["layers"]]
                complete = None not in sizes
                size = sum(each or 0 for each in sizes)
                used = os.stat(path).st_mtime
                layers = tuple(about["layers"])
                found.append(KnownImage(f"sha256:{digits}", about["name"], layers, size, complete, used))
        return sorted(found, key=lambda image: -image.used)

    def _size(self, diff_id: str) -> int | None:
        text = read_small_text(self._at("layers", diff_id[_HEX:], "facts"), _FACTS_BYTES)
        return int(json.loads(text)["bytes"]) if text else None

    def prune(self, days: float) -> tuple[int, int]:
        """Forget images that were not used for some days, and remove layers that no other image has.

        Layers in use stay. Return the number of removed layers and of their bytes.
        """
        oldest = time.time() - days * DAY
        self._prune_unfinished(time.time() - DAY)
        for image in self.known():
            if image.used <= oldest:
                with suppress(FileNotFoundError):
                    os.unlink(self._at("known", image.digest[_HEX:]))
        wanted = {diff_id[_HEX:] for image in self.known() for diff_id in image.layers}
        removed, freed = 0, 0
        for digits in sorted({*os.listdir(self._at("layers")), *os.listdir(self._at("staging"))} - wanted):
            size = self._prune_layer(digits)
            if size is not None:
                removed, freed = removed + 1, freed + size
        return removed, freed

    def _prune_unfinished(self, oldest: float) -> None:
        """Remove what processes that were killed long ago had begun to write."""
        for name in os.listdir(self._at("known")):
            with suppress(FileNotFoundError):
                if not _NAMED.fullmatch(name) and os.stat(self._at("known", name)).st_mtime < oldest:
                    os.unlink(self._at("known", name))

    def _prune_layer(self, digits: str) -> int | None:
        """Remove a layer, and what a killed process left of it; return its size, or None if it is in use or gone."""
        with self._locked(digits, wait=False) as locked:
            if not locked:
                return None
            _remove(self._at("staging", digits))
            try:
                fd = os.open(self._at("layers", digits), _DIRECTORY)
            except FileNotFoundError:
                return None
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                size = self._size(f"sha256:{digits}")
                os.rename(self._at("layers", digits), self._at("staging", digits))
            except BlockingIOError:
                return None
            finally:
                os.close(fd)
            _remove(self._at("staging", digits))
            return size or 0

    @contextmanager
    def _locked(self, digits: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of one layer. The file stays: to remove it would give two processes two locks."""
        fd = os.open(self._at("locks", digits), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)


def _refuse_foreign(place: str, *, private: bool) -> None:
    """Raise ImageError for a directory that another user owns, or could write; what is in it could not be trusted."""
    info = os.lstat(place) if private else os.stat(place)
    open_to = info.st_mode & (0o077 if private else 0o022)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or open_to:
        why = "belongs to another user" if info.st_uid != os.geteuid() else "can be changed or read by other users"
        what = f"images cannot be kept: the directory {shown(place)} {why}"
        raise ImageError(what, f"Check it, then: chmod 700 {place}")


def _is_still(place: str, fd: int) -> bool:
    try:
        return os.path.samestat(os.lstat(place), os.fstat(fd))
    except FileNotFoundError:
        return False


def _sync(place: str) -> None:
    """Wait until the disk has the whole layer: after a loss of power it is complete, or it is not there."""
    fd = os.open(place, _DIRECTORY)
    try:
        if can_sync_whole():
            sync_whole([fd])
        else:
            os.fsync(fd)
    finally:
        os.close(fd)


def _remove(place: str) -> None:
    """Remove a staging directory; it may be missing."""
    with suppress(FileNotFoundError):
        shutil.rmtree(place)


def visible_layers(layers: Iterable[CachedLayer]) -> list[CachedLayer]:
    """Return the layers that are visible, the uppermost first: none below one that hides everything."""
    visible: list[CachedLayer] = []
    for layer in layers:
        visible = [layer] if layer.hides_all else [layer, *visible]
    return visible
