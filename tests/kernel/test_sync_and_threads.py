"""Syncs many files at once: a failed sync fails the commit."""

import errno
import itertools
import os
import signal
import threading
from pathlib import Path

import pytest
from support.tree import snapshot

from handrail import Workspace
from handrail.kernel.fs import syscalls
from handrail.kernel.fs.parallel import parallel_map
from handrail.kernel.fs.syscalls import exchange_names, write_all
from handrail.kernel.write import publish, writer

PATCH = "*** Begin Patch\n" + "".join(f"*** Add File: d{n % 3}/f{n}\n+{n}\n" for n in range(40)) + "*** End Patch\n"


def patched(root: Path) -> str:
    with Workspace(str(root), approve="auto") as workspace:
        result = workspace.call("codex", "apply_patch_json", {"patch": PATCH})
    return result.error.code if result.error else "ok"


def test_many_files_are_synced_by_one_call(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []

    def whole(directories: object) -> None:
        synced.append(1)
        syscalls.sync_whole(directories)  # type: ignore[arg-type]

    monkeypatch.setattr(writer, "sync_whole", whole)
    assert patched(root) == "ok"
    assert synced == [1]
    assert sum(what[0] == "file" for what in snapshot(root).values()) == 40


def test_each_file_is_synced_if_system_cannot_sync_all_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "can_sync_whole", lambda: False)
    files: list[int] = []
    fsync = os.fsync

    def counted(fd: int) -> None:
        files.append(fd)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", counted)
    assert patched(root) == "ok"
    assert len(files) >= 40


def test_failed_sync_fails_commit_and_leaves_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(writer, "sync_whole", failing)
    assert patched(root) == "write_failed"
    assert snapshot(root) == {}


def test_sync_whole_of_unusable_handle_raises_error() -> None:
    place = os.open("/", os.O_PATH)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            syscalls.sync_whole([place])
    finally:
        os.close(place)


def test_parallel_map_returns_results_in_order() -> None:
    assert parallel_map(lambda n: n * n, range(101)) == [n * n for n in range(101)]
    assert parallel_map(str, range(5)) == list("01234")


def test_failed_write_in_thread_fails_commit_and_leaves_no_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = write_all, iter(range(30))

    def failing(fd: int, data: bytes) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(fd, data)

    monkeypatch.setattr(writer, "write_all", failing)
    assert patched(root) == "write_failed"
    assert snapshot(root) == {}


def test_parallel_map_raises_error_of_one_item() -> None:
    def act(number: int) -> int:
        return [0][number // 50]

    with pytest.raises(IndexError, match="list index out of range"):
        parallel_map(act, range(100))


def test_parallel_map_works_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    assert parallel_map(str, range(40)) == [str(number) for number in range(40)]


def test_parallel_map_waits_for_threads_after_interrupt() -> None:
    acting, interrupted = set[int](), threading.Event()

    def act(number: int) -> None:
        acting.add(number)
        if threading.current_thread() is threading.main_thread():
            interrupted.set()
            signal.raise_signal(signal.SIGINT)
        interrupted.wait()
        acting.remove(number)

    with pytest.raises(KeyboardInterrupt):
        parallel_map(act, range(10_000))
    assert len(acting) == 1  # the item of the main thread, which was interrupted


def test_published_file_is_not_open_for_writing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is could not be run at that moment, and who watches the file would hear of it twice."""
    (root / "run.sh").write_text("#!/bin/sh\n")
    held: list[str] = []

    def looking(temp: str, name: str, fd: int) -> None:
        handles = [os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd")]
        held.extend(link for link in map(os.readlink, filter(os.path.lexists, handles)) if link.endswith(temp))
        exchange_names(temp, name, fd)

    monkeypatch.setattr(publish, "exchange_names", looking)
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.call("file", "file.write", {"path": "run.sh", "content": "#!/bin/sh\ntrue\n"}).success
    assert held == []


def test_file_that_cannot_be_synced_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, calls = os.fsync, itertools.count()

    def failing(fd: int) -> None:
        if next(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    text = "*** Begin Patch\n" + "".join(f"*** Add File: f{n}\n+{n}\n" for n in range(4)) + "*** End Patch\n"
    with Workspace(str(root), approve="auto") as workspace:
        result = workspace.call("codex", "apply_patch_json", {"patch": text})
    assert result.error is not None
    assert "f2" in result.error.message
    assert snapshot(root) == {}
