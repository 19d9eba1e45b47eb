"""Many files are synced at once, and a failure of that is a failure of the commit."""

import errno
import os
from pathlib import Path

import pytest
from tree import snapshot

from handrail import Workspace
from handrail.kernel import commit, syncing
from handrail.kernel.together import each
from handrail.kernel.trees import write_all

PATCH = "*** Begin Patch\n" + "".join(f"*** Add File: d{n % 3}/f{n}\n+{n}\n" for n in range(40)) + "*** End Patch\n"


def patched(root: Path) -> str:
    with Workspace(str(root), approve="auto") as workspace:
        result = workspace.call("codex", "apply_patch_json", {"patch": PATCH})
    return result.error.code if result.error else "ok"


def test_many_files_are_synced_by_one_call(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def whole(directories: object) -> None:
        synced.append(1)
        syncing.sync_whole(directories)  # type: ignore[arg-type]

    monkeypatch.setattr(commit, "sync_whole", whole)
    assert patched(root) == "ok"
    assert synced == [1]
    assert sum(what[0] == "file" for what in snapshot(root).values()) == 40


def test_where_the_system_cannot_each_file_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "can_sync_whole", lambda: False)
    files: list[int] = []
    fsync = os.fsync

    def counted(fd: int) -> None:
        files.append(fd)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", counted)
    assert patched(root) == "ok"
    assert len(files) >= 40


def test_a_disk_that_fails_then_fails_the_commit_and_leaves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(commit, "sync_whole", failing)
    assert patched(root) == "write_failed"
    assert snapshot(root) == {}


def test_a_handle_that_cannot_be_synced_raises() -> None:
    place = os.open("/", os.O_PATH)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            syncing.sync_whole([place])
    finally:
        os.close(place)


def test_what_is_shared_among_threads_comes_back_in_order() -> None:
    assert each(lambda n: n * n, range(101)) == [n * n for n in range(101)]
    assert each(str, range(5)) == list("01234")


def test_a_failure_in_a_thread_fails_the_commit_and_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = write_all, iter(range(30))

    def failing(fd: int, data: bytes) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(fd, data)

    monkeypatch.setattr(commit, "write_all", failing)
    assert patched(root) == "write_failed"
    assert snapshot(root) == {}
