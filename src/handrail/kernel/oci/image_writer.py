"""Writes the changes of a workspace as a new layer of its image, in an OCI layout."""

import copy
import fcntl
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from handrail.errors import ImageError
from handrail.kernel.fs.syscalls import write_all
from handrail.kernel.host.state_dir import read_small_text, write_whole
from handrail.kernel.layers.flatten import flatten
from handrail.kernel.layers.upper import clear
from handrail.kernel.oci import image_manifest
from handrail.kernel.oci.image_layer import COMMIT, ImageLayer
from handrail.kernel.oci.image_names import ImageName, new_image_name
from handrail.kernel.oci.layer_writer import WrittenLayer, write_archive
from handrail.kernel.oci.refusal import refused, shown
from handrail.model.limits import MIB, Limits

_BLOBS = "blobs/sha256"
_TYPE = "application/vnd.oci.image"
_COMPRESSIONS = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}
_UNFINISHED = re.compile(r"\.handrail-[0-9a-f]{12}")
"""How `write_whole` names a file that is not whole yet."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_image(layer: ImageLayer, text: str, limits: Limits) -> str:
    """Write the changes of a layer as `oci:PATH:TAG`; return the digest of the manifest. Raises ImageError."""
    name = new_image_name(text)
    try:
        return _Layout(name, limits).write(layer)
    except OSError as error:
        raise ImageError(f"{shown(text)} cannot be written: {error.strerror or error}") from None


class _Layout:
    """Writes an OCI layout. A blob appears whole, and the index names an image when all of its blobs are there."""

    def __init__(self, name: ImageName, limits: Limits) -> None:
        self._name, self._limits = name, limits
        self._blobs = os.path.join(name.path, _BLOBS)

    def write(self, layer: ImageLayer) -> str:
        source = layer.source
        if len(source.layers) >= self._limits.oci_layers:
            raise refused("the change", f"its image has {len(source.layers)} layers, and no image may have more")
        os.makedirs(self._blobs, exist_ok=True)
        layers = [self._copied(each) for each in source.layers]
        changes, added = self._changes(layer)
        config = copy.deepcopy(source.config.whole)
        config["rootfs"]["diff_ids"] = [*(each.diff_id for each in source.layers), changes.diff_id]
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        history = config.get("history")
        config["history"] = [
            *(history if isinstance(history, list) else []),
            {"created": created, "created_by": "handrail commit"},
        ]
        config["created"] = created
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": self._document(config, "config.v1+json"),
            "layers": [*layers, added],
        }
        described = self._document(manifest, "manifest.v1+json")
        self._announce(described)
        return str(described["digest"])

    def _copied(self, below: image_manifest.LayerSource) -> dict[str, Any]:
        """Copy the blob of a layer of the image, and check its digest on the way."""
        with self._new_blob() as (fd, place):
            digest, at = hashlib.sha256(), 0
            while data := below.blob.read(at, MIB):
                digest.update(data)
                write_all(fd, data)
                at += len(data)
            found = f"sha256:{digest.hexdigest()}"
            if below.digest not in (None, found):
                raise refused("a layer of the image", f"its blob has the digest {found}, not {below.digest}")
            self._keep(fd, place, found)
        kind = _COMPRESSIONS.get(below.blob.read(0, 2), "")
        return {"mediaType": f"{_TYPE}.layer.v1.tar{kind}", "digest": found, "size": at}

    def _changes(self, layer: ImageLayer) -> tuple[WrittenLayer, dict[str, Any]]:
        """Write all changes over the image as one layer."""
        with _one_tree(layer) as top, self._new_blob() as (fd, place):
            with open(fd, "wb", closefd=False) as file:
                written = write_archive(top, file, self._limits)
            self._keep(fd, place, written.digest)
        described = {"mediaType": f"{_TYPE}.layer.v1.tar+gzip", "digest": written.digest, "size": written.size}
        return written, described

    def _document(self, value: dict[str, Any], kind: str) -> dict[str, Any]:
        data = json.dumps(value).encode()
        with self._new_blob() as (fd, place):
            write_all(fd, data)
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            self._keep(fd, place, digest)
        return {"mediaType": f"{_TYPE}.{kind}", "digest": digest, "size": len(data)}

    @contextmanager
    def _new_blob(self) -> Iterator[tuple[int, str]]:
        """Open a new file in the layout, and tell its temporary name.

        It has none until it is complete, if the file system can do that: then a killed process leaves nothing.
        """
        place = ""
        try:
            fd = os.open(self._name.path, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError:
            place = os.path.join(self._name.path, f".handrail-blob-{os.urandom(6).hex()}")
            fd = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            yield fd, place
        except BaseException:
            if place and os.path.exists(place):
                os.unlink(place)
            raise
        finally:
            os.close(fd)

    def _keep(self, fd: int, place: str, digest: str) -> None:
        """Give a whole blob its name, unless the layout has it already; a damaged one is replaced."""
        os.fsync(fd)
        target = os.path.join(self._blobs, digest.removeprefix("sha256:"))
        if place:
            os.rename(place, target)
            return
        if os.path.lexists(target):
            if _file_digest(target) == digest:
                return
            os.unlink(target)
        with suppress(FileExistsError):  # another process has just written the same
            os.link(f"/proc/self/fd/{fd}", target, src_dir_fd=fd)  # the directory is not used, but makes it follow

    def _announce(self, described: dict[str, Any]) -> None:
        """Write the index: the image takes the place of an earlier one with its tag. One process at a time."""
        path, ref = os.path.join(self._name.path, "index.json"), image_manifest.REF_NAME
        lock = os.open(self._name.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in filter(_UNFINISHED.fullmatch, os.listdir(lock)):
                os.unlink(name, dir_fd=lock)  # its process was killed: it had this lock
            try:
                index = json.loads(read_small_text(path, self._limits.oci_document_bytes) or '{"manifests": []}')
                others = [
                    each for each in index["manifests"] if (each.get("annotations") or {}).get(ref) != self._name.tag
                ]
            except (ValueError, KeyError, TypeError, AttributeError):
                raise refused(f"the layout {shown(self._name.path)}", "its index.json is not valid") from None
            entry = {**described, "annotations": {ref: self._name.tag}}
            whole = {"schemaVersion": 2, **index, "manifests": [*others, entry]}
            write_whole(os.path.join(self._name.path, "oci-layout"), b'{"imageLayoutVersion": "1.0.0"}')
            write_whole(path, json.dumps(whole).encode())
            for name in ("oci-layout", "index.json"):
                os.chmod(os.path.join(self._name.path, name), 0o644)  # as other tools write them
        finally:
            os.close(lock)


def _file_digest(path: str) -> str:
    """Return the digest of a file; an empty text if it is no regular one."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" if regular else ""


@contextmanager
def _one_tree(layer: ImageLayer) -> Iterator[int]:
    """Open a directory with all changes over the image, for the time of the block."""
    uppers = layer.upper_paths()
    made = os.path.join(layer.path, f"{COMMIT}{os.urandom(6).hex()}")
    if len(uppers) > 1:
        flatten(uppers, made)
    fd = os.open(made if len(uppers) > 1 else uppers[0], _DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
        clear(made)
