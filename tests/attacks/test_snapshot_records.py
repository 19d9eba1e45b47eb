"""Attacks Handrail's own records with snapshots that no Handrail has written."""

import io
import json
import os
import tarfile
import zlib
from pathlib import Path

import pytest
from support.layers import needs_overlays

from handrail import Snapshot, Workspace, WorkspaceError
from handrail.kernel.layers.content_id import content_id

pytestmark = [needs_overlays, pytest.mark.sandbox]

DEEP = b"[" * 100_000


def snapshot(root: Path, *entries: tarfile.TarInfo, content: bytes = b"", head: bytes = b"") -> Snapshot:
    """Return a snapshot of an empty root whose files all have the same content."""
    fd = os.open(root, os.O_RDONLY)
    known = {"version": 1, "root": str(root), "content": content_id(fd, f"{root.parent}/known.json")}
    os.close(fd)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for each, data in (
            (tarfile.TarInfo("snapshot.json"), head or json.dumps(known).encode()),
            *((each, content) for each in entries),
            (tarfile.TarInfo("end"), b""),
        ):
            each.size = len(data) if each.isreg() else 0
            archive.addfile(each, io.BytesIO(data))
    return Snapshot.of(made.getvalue())


def entry(name: str, kind: bytes = tarfile.REGTYPE, **headers: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.pax_headers = kind, headers
    return info


def line(n: object, path: object, before: object) -> bytes:
    """Return a line of the journal with a correct checksum."""
    return summed({"n": n, "time": 1, "files": [[path, before, None, None]]})


def summed(facts: object) -> bytes:
    body = facts if isinstance(facts, bytes) else json.dumps(facts, separators=(",", ":")).encode()
    return b'%b,"sum":"%08x"}\n' % (body[:-1], zlib.crc32(body))


def indexed(body: bytes) -> bytes:
    return b"%08x\n%b" % (zlib.crc32(body), body)


@pytest.mark.parametrize("headers", [{"mtime": "1e999"}, {"mtime": "1e30"}, {"uid": "-5"}, {"uid": str(1 << 70)}])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_snapshot_with_impossible_number_is_refused(root: Path, kind: bytes, headers: dict[str, str]) -> None:
    if "uid" in headers and os.geteuid():
        pytest.skip("only root gives files to their owners")
    with pytest.raises(WorkspaceError, match="cannot open the snapshot"):
        Workspace.open(snapshot(root, entry("upper/a", kind, **headers)), root)


def test_snapshot_with_deeply_nested_head_is_refused(root: Path) -> None:
    with pytest.raises(WorkspaceError, match="cannot open the snapshot"):
        Workspace.open(snapshot(root, head=DEEP), root)


RECORDS = {
    "journal with a number that is none": ("journal.jsonl", line("x", "a", None)),
    "journal with a path that is none": ("journal.jsonl", line(1, 5, None)),
    "journal with an odd entry": ("journal.jsonl", line(1, "a", [7, [], "x"])),
    "deep journal": ("journal.jsonl", summed(b'{"n":1,"x":' + DEEP + b"}")),
    "deep git record": ("git.json", DEEP),
    "odd git record": ("git.json", b'{"parked": 5}'),
    "git record that leads outside": ("git.json", b'{"own": {}, "parked": [["../..", "kept", "name", ""]]}'),
    "deep index": ("kept.json", indexed(DEEP)),
    "odd index": ("kept.json", indexed(b'{"a": 5}')),
    "deep list": ("unkept.json", DEEP),
    "old contents": ("blobs/new/evil", b""),
}


@pytest.mark.parametrize(("name", "content"), RECORDS.values(), ids=RECORDS)
def test_snapshot_with_odd_record_opens_and_works(root: Path, name: str, content: bytes) -> None:
    above = [entry(f"state/{place}", tarfile.DIRTYPE) for place in ("blobs", "blobs/new")] if "/" in name else []
    found = snapshot(root, *above, entry(f"state/{name}"), content=content)
    with Workspace.open(found, root, approve="auto") as workspace:
        assert workspace.exec(["sh", "-c", "echo new >made"]).ok
        assert [each.path for each in workspace.changes()] == ["made"]
        workspace.history().entries()
        with workspace.fork()[0] as fork:
            assert fork.read_bytes("made") == b"new\n"
    assert os.listdir(root) == []
