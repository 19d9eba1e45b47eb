"""Checks `durability = "log"`: after a loss of power, the next open restores every change that was reported as done.

No test cuts the power. Each keeps the log of a session, damages the files as a loss of power may, and lets the next
open believe that the system was started again.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.scenes import SCENES, Stage, build, left_over
from support.fault_injection import failing, faults
from support.writer import commit

from handrail import Workspace
from handrail.kernel.write import log_recovery, redo_log
from handrail.model.files import Put

YEAR_NS = 365 * 86_400 * 10**9
PATCH = "*** Begin Patch\n*** Update File: {0}\n@@\n-keep\n+kept\n*** Delete File: sub/remove.txt\n*** End Patch\n"
Damage = Callable[[Path, bytes | None], None]


def torn(path: Path, old: bytes | None) -> None:
    new = path.read_bytes()
    damaged(path, new[: len(new) // 2] + bytes(len(new) - len(new) // 2))


def zeros(path: Path, old: bytes | None) -> None:
    damaged(path, bytes(path.stat().st_size))


def empty(path: Path, old: bytes | None) -> None:
    damaged(path, b"")


def older(path: Path, old: bytes | None) -> None:
    """The content that the file had before the last change by another program, which was not synced either."""
    damaged(path, b"an old content that no log knows\n")


def as_before(path: Path, old: bytes | None) -> None:
    if old is None:
        path.unlink()
    else:
        damaged(path, old)


def missing(path: Path, old: bytes | None) -> None:
    path.unlink()


def damaged(path: Path, data: bytes) -> None:
    times = path.stat()
    with path.open("r+b") as file:
        file.truncate()
        file.write(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


DAMAGES: tuple[Damage, ...] = (torn, zeros, empty, older, as_before, missing)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        log_recovery, "_PUBLISHING_NS", YEAR_NS
    )  # a test sets times of contents, but no times of status
    root = tmp_path / "workspace"
    build(str(root))
    return root


def opened(root: Path, durability: str = "log") -> Workspace:
    return Workspace(str(root), approve="auto", log_level="off", durability=durability)  # type: ignore[arg-type]


def log_of(workspace: Workspace) -> Path:
    return Path(workspace._services.state.path, "redo.log")


def log_state(workspace: Workspace) -> str:
    log = workspace._services.writer._durability._log
    assert log is not None
    return log.state()


def after(root: Path, *acts: Callable[[Workspace], object]) -> bytes:
    """Act in a session; return the log as it is before the session closes."""
    with opened(root) as workspace:
        for act in acts:
            assert act(workspace)
        return log_of(workspace).read_bytes()


def write(name: str, text: str) -> Callable[[Workspace], bool]:
    return lambda workspace: workspace.call("file", "file.write", {"path": name, "content": text}).success


def patch(workspace: Workspace) -> bool:
    return workspace.call("codex", "apply_patch_freeform", {"patch": PATCH.format("keep.txt")}).success


def start_again(root: Path, log: bytes, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Open the workspace as after a loss of power that left this log."""
    with opened(root) as workspace:
        place = log_of(workspace)
    place.write_bytes(log)
    monkeypatch.setattr(redo_log, "boot_id", lambda: "the next boot")
    return opened(root)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    "acts",
    [
        (write("replace.txt", "new\n" * 7),),
        (write("replace.txt", "newer\n"), write("replace.txt", "newest\n" * 900)),
        (write("new.txt", "new\n"),),
        (write("fresh/deep/new.txt", "new\n"), write("fresh/deep/new.txt", "newer\n")),
        (patch,),
    ],
    ids=["replace", "twice", "create", "in new directories", "patch"],
)
def test_open_after_power_loss_restores_reported_changes(
    root: Path, acts: tuple[Callable[[Workspace], bool], ...], damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = contents(root)
    log = after(root, *acts)
    new = contents(root)
    for name in {*old, *new}:
        if name in new and old.get(name) != new[name]:
            damage(root / name, old.get(name))
        elif name not in new and damage == as_before:
            (root / name).write_bytes(old[name])
            os.utime(root / name, ns=(0, 0))
    assert contents(root) != new
    with start_again(root, log, monkeypatch) as workspace:
        assert contents(root) == new
        assert log_state(workspace) == "empty"
        assert not workspace.warnings
    assert not left_over(workspace)


def test_file_changed_later_stays_and_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = after(root, write("replace.txt", "by handrail\n"), write("new.txt", "new\n"))
    (root / "replace.txt").write_bytes(b"by the user\n")
    (root / "new.txt").unlink()
    monkeypatch.setattr(log_recovery, "_PUBLISHING_NS", -YEAR_NS)  # the directory changed later, too
    with start_again(root, log, monkeypatch) as workspace:
        assert (root / "replace.txt").read_bytes() == b"by the user\n"
        assert not (root / "new.txt").exists()
        named = [warning for warning in workspace.warnings if "loss of power" in warning]
        assert [warning.rpartition(" ")[2] for warning in named] == ["replace.txt", "new.txt"]


def test_copy_with_old_times_is_known_by_its_status(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = after(root, write("replace.txt", "by handrail\n"))
    damaged(root / "replace.txt", b"moved there by the user")
    monkeypatch.setattr(log_recovery, "_PUBLISHING_NS", -YEAR_NS)
    with start_again(root, log, monkeypatch):
        assert (root / "replace.txt").read_bytes() == b"moved there by the user"


def test_power_loss_in_redo_is_redone_by_next_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = after(root, write("replace.txt", "new\n" * 7), patch)
    new = contents(root)
    times = {name: (root / name).stat().st_mtime_ns for name in ("replace.txt", "keep.txt")}
    for at in range(1, 200):
        for name, written in times.items():
            zeros(root / name, None)
            os.utime(root / name, ns=(written, written))
        with faults(at, failing(errno.EIO), lasting=True) as faulty:
            start_again(root, log, monkeypatch).close() if at == 1 else reopened(root, log).close()
        reopened(root).close()
        assert contents(root) == new, at
        if not faulty.reached:
            break
    assert at > 20


def reopened(root: Path, log: bytes = b"") -> Workspace:
    if log:
        with opened(root) as workspace:
            place = log_of(workspace)
        place.write_bytes(log)
    return opened(root)


def test_undone_change_is_not_redone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = contents(root)
    log = after(root, write("replace.txt", "new\n"), lambda workspace: workspace.history().undo())
    with start_again(root, log, monkeypatch):
        assert contents(root) == old


def test_commit_of_other_level_empties_log_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root) as first, opened(root, "full") as second:
        assert write("replace.txt", "first\n")(first)
        assert write("replace.txt", "second\n")(second)
        log = log_of(first).read_bytes()
    os.utime(root / "replace.txt", ns=(0, 0))  # else the times alone would save it
    with start_again(root, log, monkeypatch):
        assert (root / "replace.txt").read_bytes() == b"second\n"


def test_processes_that_share_a_log_lose_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(root) as first, opened(root) as second:
        for number in range(3):
            assert write("replace.txt", f"first {number}\n")(first)
            assert write("keep.txt", f"second {number}\n")(second)
        log = log_of(first).read_bytes()
    for name in ("replace.txt", "keep.txt"):
        empty(root / name, None)
    with start_again(root, log, monkeypatch):
        assert (root / "replace.txt").read_bytes() == b"first 2\n"
        assert (root / "keep.txt").read_bytes() == b"second 2\n"


@pytest.mark.parametrize("lost", [1, 5, 40])
def test_torn_record_is_ignored_and_earlier_ones_redone(root: Path, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = after(root, write("replace.txt", "first\n"), write("keep.txt", "second\n"))
    empty(root / "replace.txt", None)
    empty(root / "keep.txt", None)
    with start_again(root, log[:-lost], monkeypatch):
        assert (root / "replace.txt").read_bytes() == b"first\n"
        assert (root / "keep.txt").read_bytes() == b""


def test_records_before_checkpoint_are_not_redone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is emptied in place: the rest of an older record may follow the newest one."""

    def checkpoint(workspace: Workspace) -> bool:
        workspace._services.writer._durability.checkpoint()
        return True

    log = after(root, write("replace.txt", "long " * 99), write("keep.txt", "x"), checkpoint, write("new.txt", "y"))
    assert b"long long" in log
    empty(root / "replace.txt", None)
    with start_again(root, log, monkeypatch):
        assert (root / "replace.txt").read_bytes() == b""


def test_log_is_emptied_after_its_time(root: Path) -> None:
    settings = {"limits": {"redo_log_seconds": 0.05}, "durability": "log", "approve": "auto", "log_level": "off"}
    with Workspace(str(root), **settings) as workspace:  # type: ignore[arg-type]
        assert write("replace.txt", "new\n")(workspace)
        timer = workspace._services.writer._durability._log._timer  # type: ignore[union-attr]
        assert timer is not None
        timer.join()
        with workspace._services.writer.locked("."):
            assert log_state(workspace) == "empty"


def test_log_of_another_directory_stays_until_that_comes_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = after(root, write("replace.txt", "new\n"))
    empty(root / "replace.txt", None)
    away = root.rename(root.parent / "away")
    build(str(root))
    with start_again(root, log, monkeypatch) as workspace:
        assert write("replace.txt", "elsewhere\n")(workspace)
    assert log_of(workspace).read_bytes() == log
    root.rename(root.parent / "other")
    away.rename(root)
    with opened(root):
        assert (root / "replace.txt").read_bytes() == b"new\n"


@pytest.mark.parametrize("scene", ["replace", "create in new directories", "delete", "four files"])
def test_commit_that_fails_is_never_redone(scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails at every call once; what was rolled back is not in the log that a later loss of power leaves."""
    monkeypatch.setenv("HANDRAIL_DURABILITY", "log")
    stage = Stage.of(scene, str(tmp_path / "workspace"))
    for at in range(1, 1000):
        stage.reset()
        with opened(Path(stage.root)) as workspace:
            with faults(at, failing(errno.ENOSPC)) as faulty:
                answer = stage.act(workspace)
            assert stage.tree() == ("new" if answer else "old"), at
            assert answer or log_state(workspace) == "empty", at
        assert stage.tree() == ("new" if answer else "old"), at
        assert not left_over(workspace)
        if not faulty.reached:
            return


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_kill_at_level_log_leaves_whole_tree(scene: str, tmp_path: Path) -> None:
    here = os.path.dirname(__file__)
    variables = {
        "TMPDIR": str(tmp_path),
        "HANDRAIL_DURABILITY": "log",
        "PYTHONPATH": os.pathsep.join([here, *sys.path]),
    }
    run = subprocess.run(
        [sys.executable, os.path.join(here, "killing.py"), scene, str(tmp_path / "workspace"), "9"],
        env=os.environ | variables,
        capture_output=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert found["wrong"] == []
    assert found["points"] >= 10


def test_large_commit_is_synced_without_log(root: Path) -> None:
    with opened(root) as workspace:
        assert write("small.txt", "small\n")(workspace)
        reader, writer = workspace._services.reader, workspace._services.writer
        commit(writer, [Put("keep.txt", bytes(17 << 20), reader.read("keep.txt"))])
        assert log_state(workspace) == "empty"
