"""Builds small container images: layers from entries, OCI layouts, and archives as `docker save` writes them."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Entry = tuple[tarfile.TarInfo, bytes]
REF_NAME = "org.opencontainers.image.ref.name"
_PACKED = {b"\x1f\x8b": "+gzip", b"\x28\xb5": "+zstd"}
_TIME = 1_700_000_000


def entry(name: str, data: bytes = b"", *, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, target: str = "") -> Entry:
    """Return one entry of a layer."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode, info.linkname, info.mtime = kind, len(data), mode, target, _TIME
    return info, data


def directory(name: str, mode: int = 0o755) -> Entry:
    return entry(name, kind=tarfile.DIRTYPE, mode=mode)


def symlink(name: str, target: str) -> Entry:
    return entry(name, kind=tarfile.SYMTYPE, target=target)


def hard_link(name: str, target: str) -> Entry:
    return entry(name, kind=tarfile.LNKTYPE, target=target)


def device(name: str, kind: bytes = tarfile.CHRTYPE) -> Entry:
    made = entry(name, kind=kind, mode=0o666)
    made[0].devmajor, made[0].devminor = 1, 5
    return made


def layer(*entries: Entry, form: Any = tarfile.PAX_FORMAT) -> bytes:
    """Return the archive of a layer. Names stay as they are given."""
    made = io.BytesIO()
    for info, data in entries:
        made.write(info.tobuf(form, "utf-8", "surrogateescape"))
        made.write(data + bytes(-len(data) % 512))
    return made.getvalue() + bytes(1024)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layout(
    path: Path,
    *layers: bytes,
    tag: str = "latest",
    settings: dict[str, Any] | None = None,
    pack: Any = gzip.compress,
    diff_ids: Iterable[str] | None = None,
) -> str:
    """Write an OCI layout with one image and return its name: `oci:PATH:TAG`."""
    blobs = path / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def stored(data: bytes, kind: str) -> dict[str, Any]:
        (blobs / digest(data).removeprefix("sha256:")).write_bytes(data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data)}

    packed = [pack(each) for each in layers]
    described = [stored(each, f"layer.v1.tar{_PACKED.get(each[:2], '')}") for each in packed]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings or {},
        "rootfs": {"type": "layers", "diff_ids": [*(map(digest, layers) if diff_ids is None else diff_ids)]},
        "history": [{"created_by": "test"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "config": stored(json.dumps(config).encode(), "config.v1+json"),
        "layers": described,
    }
    index = {
        "schemaVersion": 2,
        "manifests": [stored(json.dumps(manifest).encode(), "manifest.v1+json") | {"annotations": {REF_NAME: tag}}],
    }
    (path / "index.json").write_text(json.dumps(index))
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return f"oci:{path}:{tag}"


def docker_archive(path: Path, *layers: bytes, name: str = "made:latest") -> str:
    """Write an archive as `docker save` does, and return its name: `docker-archive:PATH`."""
    config = json.dumps({"rootfs": {"diff_ids": [digest(each) for each in layers]}}).encode()
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": names}]
    members = [
        *(entry(member, data) for member, data in zip(names, layers, strict=True)),
        entry("config.json", config),
        entry("manifest.json", json.dumps(manifest).encode()),
    ]
    path.write_bytes(layer(*members))
    return f"docker-archive:{path}"
