"""Lets the system itself cause the faults: real mounts, real limits, real signals."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.scenes import Stage, left_over, open_workspace
from support.fault_injection import faults

from handrail import Workspace

HERE = os.path.dirname(__file__)
CALLS = ("mkdirat", "linkat", "renameat2", "unlinkat", "pwrite64", "fsync")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, *sys.path])}


def code(workspace: Workspace, tool: str, **params: Any) -> str:
    error = workspace.call("file", tool, params).error
    return error.code if error else "ok"


def test_full_or_read_only_disk_gives_clear_errors_and_loses_nothing(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=256k none "$0" && exec "$@"'
    enter = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    trial = [*enter, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(trial, check=False).returncode:
        pytest.skip("mounting takes a mount namespace, which this machine does not give")
    argv = [*enter, "sh", "-c", script, str(tmp_path), sys.executable, f"{HERE}/mounted.py", str(tmp_path)]
    run = subprocess.run(argv, env=environment(), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    found = json.loads(run.stdout)
    kinds = ("create", "create deep", "patch", "replace")
    assert found == {
        "full": dict.fromkeys(kinds, "write_failed"),
        "full, tree kept": True,
        "full, delete": "ok",
        "room again": dict.fromkeys(kinds, "ok"),
        "read-only": dict.fromkeys((*kinds, "delete"), "write_failed"),
        "read-only, answers": dict.fromkeys(("file", "gemini", "context", "copilot", "codex"), "Read-only file system"),
        "read-only, records": [],
        "read-only, notes": [],
        "read-only, read": "ok",
        "read-only, tree kept": True,
        "left": [],
    }


def test_forked_child_does_not_disturb_commits_of_parent(tmp_path: Path) -> None:
    argv = [sys.executable, f"{HERE}/children.py", str(tmp_path)]
    run = subprocess.run(argv, env=environment(), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    assert json.loads(run.stdout) == {
        "closes_what_it_inherited": {"before": 1, "after": 1, "at the end": 0},
        "writes_too": {"answers": [True, True], "left": 0, "names": ["one", "three", "two"]},
        "is_forked_in_a_commit": {"points": True, "wrong": []},
        "lives_on": [True, True],
    }


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_file_beyond_size_limit_of_process_is_refused(workspace: Workspace, root: Path) -> None:
    (root / "file.txt").write_text("old\n")
    with largest_file(10_000):
        assert code(workspace, "file.write", path="file.txt", content="x" * 20_000) == "write_failed"
        assert code(workspace, "file.write", path="sub/new.txt", content="x" * 20_000) == "write_failed"
        assert code(workspace, "file.write", path="small.txt", content="x" * 5_000) == "ok"
    assert sorted(os.listdir(root)) == ["file.txt", "small.txt"]
    assert (root / "file.txt").read_text() == "old\n"


def test_too_long_name_creates_nothing(workspace: Workspace, root: Path) -> None:
    assert code(workspace, "file.write", path="a/b/" + "n" * 256, content="x") == "write_failed"
    assert os.listdir(root) == []
    assert code(workspace, "file.write", path="a/b/" + "n" * 255, content="x") == "ok"


def test_parent_directory_removed_during_write_is_created_again(root: Path) -> None:
    """Taken away before every single step of the commit."""
    for at in range(1, 100):
        top = root / str(at)
        (top / "sub").mkdir(parents=True)

        def vanish(name: str, real: Any, args: Any, options: Any, top: Path = top) -> Any:
            shutil.rmtree(top, ignore_errors=True)
            return real(*args, **options)

        with Workspace(str(root), approve="auto") as workspace:
            with faults(at, vanish) as faulty:
                answer = code(workspace, "file.write", path=f"{at}/sub/file", content="x")
            written = (top / "sub" / "file").exists()
        if not faulty.reached:
            return
        assert answer == "ok"
        assert not written or (top / "sub" / "file").read_text() == "x"
        assert not [name for name in root.rglob("*") if ".handrail-" in name.name]


def test_planted_temporary_file_is_neither_followed_nor_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")

    def plant(name: str, real: Any, args: Any, options: Any) -> Any:
        if name == "open" and ".handrail-" in args[0]:
            os.symlink(tmp_path / "outside", args[0], dir_fd=options["dir_fd"])
        return real(*args, **options)

    for at in range(1, 8):
        with Workspace(str(root), approve="auto") as workspace, faults(at, plant):
            assert code(workspace, "file.write", path="file", content=str(at)) == "ok"
        assert (root / "file").read_text() == str(at)
        assert os.listdir(root) == ["file"]
    assert (tmp_path / "outside").read_text() == "outside"


def test_damaged_intent_does_not_stop_workspace_from_opening(root: Path) -> None:
    spoils = [b"", b"{", b"{}\n", b"null\n", b"done\n", b"\xff\xfe\n", b'{"root": 1, "steps": [{}], "made": []}\n']
    for spoil in spoils:
        with Workspace(str(root), approve="auto") as workspace:
            pending = Path(workspace._services.state.pending)
        (pending / "0123456789ab").write_bytes(spoil)
        with Workspace(str(root), approve="auto") as workspace:
            assert workspace.recovered == 0
            assert code(workspace, "file.write", path="file", content="x") == "ok"
        assert os.listdir(pending) == []


def test_intent_of_another_directory_with_same_path_is_left_alone(tmp_path: Path) -> None:
    stage = Stage.of("replace", str(tmp_path / "workspace"))
    half_done(stage)
    os.rename(stage.root, tmp_path / "elsewhere")
    stage.reset()
    with open_workspace(stage.root) as workspace:
        assert (workspace.recovered, stage.tree()) == (0, "old")


def test_commit_rolls_back_another_process_that_was_killed_since_the_last_commit(tmp_path: Path) -> None:
    """A process that was alone for a while does not list the intents again until another one makes its own."""
    stage = Stage.of("replace", str(tmp_path / "workspace"))
    stage.reset()
    with open_workspace(stage.root) as workspace:
        pending = workspace._services.state.pending
        for text in ("first\n", "second\n", "keep\n"):
            assert code(workspace, "file.write", path="keep.txt", content=text) == "ok"
            os.utime(pending, (1, 1))
        assert strace("replace", stage.root, "--inject=renameat2:signal=SIGKILL:when=1") == "killed"
        assert stage.tree().startswith("neither")
        assert code(workspace, "file.write", path="other.txt", content="x") == "ok"
        os.unlink(f"{stage.root}/other.txt")
        assert stage.tree() == "old"


def half_done(stage: Stage) -> None:
    stage.reset()
    assert strace("replace", stage.root, "--inject=renameat2:signal=SIGKILL:when=1") == "killed"
    assert stage.tree().startswith("neither")


def strace(scene: str, root: str, *options: str) -> str:
    """Play a scene with injected system call faults; return done, failed or killed."""
    if not shutil.which("strace"):
        pytest.skip("strace is not here")
    argv = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + ",".join(CALLS), *options]
    run = subprocess.run(
        [*argv, sys.executable, f"{HERE}/one_call.py", scene, root], env=environment(), capture_output=True, check=False
    )
    return "killed" if run.returncode < 0 else {b"True\n": "done", b"False\n": "failed"}[run.stdout]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", ["signal=SIGKILL", "error=EIO", "error=ENOSPC"])
def test_injected_system_call_faults_leave_whole_tree(tmp_path: Path, call: str, how: str) -> None:
    stage = Stage.of("four files", str(tmp_path / "workspace"))
    outcomes = []
    for when in (1, 3):
        stage.reset()
        outcomes.append(strace("four files", stage.root, f"--inject={call}:{how}:when={when}"))
        with open_workspace(stage.root) as workspace:
            assert stage.tree() in {"done": ["new"], "failed": ["old"], "killed": ["old", "new"]}[outcomes[-1]]
        assert not left_over(workspace)
    assert outcomes[0] == ("killed" if "signal" in how else "failed")
