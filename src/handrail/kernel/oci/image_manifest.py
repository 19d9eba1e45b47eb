"""Opens an image: finds its manifest, its configuration and its layers, and checks what it reads."""

import hashlib
import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from handrail.errors import ImageError, did_you_mean
from handrail.kernel.oci.blob_places import ArchiveFile, BlobPlace, LayoutDirectory, checked_digest
from handrail.kernel.oci.blob_stream import Blob
from handrail.kernel.oci.image_names import ImageName
from handrail.kernel.oci.refusal import refused, shown
from handrail.model.limits import Limits

REF_NAME = "org.opencontainers.image.ref.name"
_NESTED = 3
"""The most indexes inside each other."""
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}
_NAMES_SHOWN, _NAMES_COMPARED = 10, 1000


class ImageConfig(NamedTuple):
    """Holds what the configuration of an image says about its programs, and the whole document for a commit."""

    environment: tuple[str, ...]
    """`NAME=value`."""
    workdir: str
    user: str
    whole: dict[str, Any]


class LayerSource(NamedTuple):
    """Names one layer: its archive, and the digests that it must have."""

    diff_id: str
    blob: Blob
    digest: str | None
    """The digest of the blob as it is stored; None in archives that name none."""


class Image(NamedTuple):
    """Describes an open image. Its handles are closed with its place."""

    name: str
    """How a user names it, with an absolute path."""
    what: str
    """The image in a message."""
    digest: str
    """The digest of its configuration, which names all its layers."""
    config: ImageConfig
    layers: tuple[LayerSource, ...]


@contextmanager
def open_image(name: ImageName, limits: Limits) -> Iterator[Image]:
    """Open an image and check its manifest and configuration; the layers are not read yet. Raises ImageError."""
    archive = name.kind == "docker-archive"
    place: BlobPlace = ArchiveFile(name.path, limits) if archive else LayoutDirectory(name.path, limits)
    try:
        yield _Reader(place, limits, str(name)).image(name.tag)
    finally:
        place.close()


class _Reader:
    """Reads the documents of an image, each within a limit."""

    def __init__(self, place: BlobPlace, limits: Limits, name: str) -> None:
        self._place, self._limits, self._name, self._what = place, limits, name, place.what

    def image(self, tag: str) -> Image:
        legacy = self._place.find("manifest.json") if isinstance(self._place, ArchiveFile) else None
        if legacy is not None:
            return self._of_docker(self._list(self._json(legacy, "manifest.json"), "manifest.json"), tag)
        index = self._place.find("index.json")
        if index is None:
            raise refused(self._what, "it holds neither index.json nor manifest.json")
        chosen = self._chosen(self._entries(self._json(index, "index.json"), "manifests"), tag)
        return self._of_layout(chosen, _NESTED)

    # OCI layouts

    def _chosen(self, entries: list[dict[str, Any]], tag: str) -> dict[str, Any]:
        """Return the entry of the index that a tag names, or the only one."""
        named = [(str(self._object(each.get("annotations") or {}).get(REF_NAME, "")), each) for each in entries]
        found = [each for name, each in named if not tag or tag in (name, name.rpartition(":")[2])]
        if len(found) == 1:
            return found[0]
        raise self._ambiguous("tag", tag, [name for name, _ in named if name], len(found))

    def _ambiguous(self, word: str, given: str, names: list[str], found: int) -> ImageError:
        """Return the error for a tag or name that none of the images has, or several."""
        listed = ", ".join(map(shown, names[:_NAMES_SHOWN])) or "none"
        if given and not found:
            near = did_you_mean(given, [shown(name) for name in names[:_NAMES_COMPARED]])
            return ImageError(f"{self._what} has no {word} {shown(given)}{near}", f"Its {word}s: {listed}")
        many = f"{found} images" if found else "no image"
        return ImageError(f"{self._what} holds {many}", f"Name one by its {word}: {listed}" if found else "")

    def _of_layout(self, entry: dict[str, Any], depth: int) -> Image:
        document = self._object(self._described(entry))
        if "manifests" in document:
            if not depth:
                raise refused(self._what, "its indexes are nested too deeply")
            return self._of_layout(self._for_this_machine(self._entries(document, "manifests")), depth - 1)
        described = self._object(document.get("config"))
        layers = self._entries(document, "layers")
        blobs = [(self._blob(each), checked_digest(each.get("digest"), self._what)) for each in layers]
        return self._checked(self._object(self._described(described)), str(described["digest"]), blobs)

    def _for_this_machine(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        wanted = _MACHINES.get(platform.machine(), platform.machine())
        for each in entries:
            found = self._object(each.get("platform") or {})
            if (found.get("os", "linux"), found.get("architecture", wanted)) == ("linux", wanted):
                return each
        raise refused(self._what, f"it holds no image for linux/{wanted}")

    def _described(self, entry: dict[str, Any]) -> Any:
        """Return the document that a descriptor names, if its digest is right."""
        digest = checked_digest(entry.get("digest"), self._what)
        data = self._blob(entry).whole(self._limits.oci_document_bytes, f"{self._what}: {digest}")
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise refused(self._what, f"{digest} has another digest than its name says")
        return self._parsed(data, digest)

    def _blob(self, entry: dict[str, Any]) -> Blob:
        digest = checked_digest(entry.get("digest"), self._what)
        blob = self._place.find(f"blobs/sha256/{digest.removeprefix('sha256:')}")
        if blob is None:
            raise refused(self._what, f"the blob {digest} is missing")
        if entry.get("size") != blob.size:
            raise refused(self._what, f"the blob {digest} has {blob.size} bytes, not {shown(str(entry.get('size')))}")
        return blob

    # archives of docker

    def _of_docker(self, images: list[Any], tag: str) -> Image:
        known = [(each, self._list(each.get("RepoTags") or [], "RepoTags")) for each in map(self._object, images)]
        found = [each for each, names in known if not tag or tag in names or f"{tag}:latest" in names]
        if len(found) != 1:
            raise self._ambiguous("name", tag, [str(name) for _, names in known for name in names], len(found))
        config, layers = found[0].get("Config"), self._list(found[0].get("Layers"), "manifest.json")
        data = self._member(config).whole(self._limits.oci_document_bytes, f"{self._what}: {shown(str(config))}")
        blobs = [(self._member(name), _digest_in(name)) for name in layers]
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return self._checked(self._object(self._parsed(data, str(config))), digest, blobs)

    def _member(self, name: Any) -> Blob:
        blob = self._place.find(name) if isinstance(name, str) else None
        if blob is None:
            raise refused(self._what, f"its member {shown(str(name))} is missing")
        return blob

    # configurations

    def _checked(self, config: dict[str, Any], digest: str, blobs: Sequence[tuple[Blob, str | None]]) -> Image:
        """Check a configuration, whose layers are in `blobs`, and return the image. Raises ImageError."""
        rootfs = self._object(config.get("rootfs"))
        diff_ids = [checked_digest(each, self._what) for each in self._list(rootfs.get("diff_ids"), "diff_ids")]
        if len(diff_ids) != len(blobs):
            raise refused(self._what, f"it has {len(blobs)} layers, and digests for {len(diff_ids)}")
        if len(diff_ids) > self._limits.oci_layers:
            raise refused(self._what, f"it has {len(diff_ids)} layers; the most are {self._limits.oci_layers}")
        inner = self._object(config.get("config") or {})
        settings = ImageConfig(
            environment=tuple(self._variable(each) for each in self._list(inner.get("Env") or [], "Env")),
            workdir=self._text(inner.get("WorkingDir") or "/", "WorkingDir"),
            user=self._text(inner.get("User") or "", "User"),
            whole=config,
        )
        layers = [LayerSource(diff, blob, name) for diff, (blob, name) in zip(diff_ids, blobs, strict=True)]
        return Image(self._name, self._what, digest, settings, tuple(layers))

    def _variable(self, value: Any) -> str:
        text = self._text(value, "Env")
        if text.find("=") < 1:
            raise refused(self._what, f"its Env holds {shown(text)}, which is not NAME=value")
        return text

    # documents

    def _json(self, blob: Blob, name: str) -> Any:
        return self._parsed(blob.whole(self._limits.oci_document_bytes, f"{self._what}: {name}"), name)

    def _parsed(self, data: bytes, name: str) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise refused(self._what, f"{shown(name)} is not valid JSON") from None

    def _object(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refused(self._what, "an object is missing in its documents")
        return value

    def _list(self, value: Any, name: str) -> list[Any]:
        if not isinstance(value, list):
            raise refused(self._what, f"{name} holds no list")
        return value

    def _entries(self, value: Any, name: str) -> list[dict[str, Any]]:
        return [self._object(each) for each in self._list(self._object(value).get(name), name)]

    def _text(self, value: Any, name: str) -> str:
        if not isinstance(value, str) or "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise refused(self._what, f"{name} in its configuration is not a text")
        return value


def _digest_in(name: str) -> str | None:
    """Return the digest that a newer archive names a layer by; older archives use names of their own."""
    place, _, digits = name.rpartition("/")
    return checked_digest(f"sha256:{digits}", name) if place == "blobs/sha256" else None
