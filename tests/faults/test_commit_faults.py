"""Fails or kills a commit at every step: the old tree or the new one is there, complete, without leftover files."""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.scenes import SCENES, Stage, build, left_over, open_workspace
from support.fault_injection import Act, ShortThenFull, failing, faults, short

LONG = bool(os.environ.get("HANDRAIL_LONG"))
ERRORS = {name: failing(getattr(errno, name)) for name in ("ENOSPC", "EIO", "EDQUOT", "EACCES", "EROFS")}


@pytest.fixture(params=SCENES)
def stage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # the fallback place for the state directory
    return Stage.of(request.param, str(tmp_path / "workspace"))


def every_point(stage: Stage, act: Callable[[], Act], *, lasting: bool = False) -> Iterator[tuple[int, bool, str]]:
    """Fail at one call after another until the scene succeeds; yield the call, the answer and the tree after it."""
    for at in range(1, 1000):
        stage.reset()
        with open_workspace(stage.root) as workspace:
            with faults(at, act(), lasting=lasting, missing=stage.missing) as faulty:
                answer = stage.act(workspace)
            tree = stage.tree()
        yield at, answer, tree
        if not faulty.reached:
            return


def after_reopening(stage: Stage) -> str:
    with open_workspace(stage.root) as workspace:
        tree = stage.tree()
    return f"{tree}, left: {left}" if (left := left_over(workspace)) else tree


@pytest.mark.parametrize("error", ERRORS)
def test_error_keeps_old_tree_and_success_leaves_new_tree(stage: Stage, error: str) -> None:
    wrong, answers = [], []
    for at, answer, tree in every_point(stage, lambda: ERRORS[error]):
        later = after_reopening(stage)
        answers.append(answer)
        expected = "new" if answer else "old"
        if later != expected or (not answer and tree != "old"):
            wrong.append((at, answer, tree, later))
    assert not wrong
    assert answers.count(False) >= 3


def test_commit_without_rename_exchange_leaves_whole_tree(stage: Stage) -> None:
    stage.missing = ("exchange_names",)
    for at, answer, tree in every_point(stage, lambda: failing(errno.EIO)):
        assert answer or tree == "old", at
        assert after_reopening(stage) == ("new" if answer else "old"), at


def test_commit_without_hard_links_leaves_whole_tree(stage: Stage) -> None:
    """A lone replacement is then one rename, which nothing can take back."""
    stage.missing = ("exchange_names", "link")
    for at, answer, _ in every_point(stage, lambda: failing(errno.EIO)):
        assert after_reopening(stage) in (["new"] if answer else ["old", "new"]), at


def test_failed_commit_can_be_repeated_at_once(stage: Stage) -> None:
    for at in range(1, 1000):
        stage.reset()
        with open_workspace(stage.root) as workspace:
            with faults(at, failing(errno.EIO)) as faulty:
                first = stage.act(workspace)
            assert first or stage.act(workspace)
            # The next change removes the files that the cleanup of this change left.
            assert workspace.call("file", "file.write", {"path": "keep.txt", "content": "kept\n"}).success
            assert workspace.call("file", "file.write", {"path": "keep.txt", "content": "keep\n"}).success
            assert stage.tree() == "new"
        assert not left_over(workspace)
        if not faulty.reached:
            return


def test_disk_that_fails_for_good_leaves_whole_tree_after_reopening(stage: Stage) -> None:
    for at, answer, _ in every_point(stage, lambda: failing(errno.EIO), lasting=True):
        assert after_reopening(stage) in (["new"] if answer else ["old", "new"]), at


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_leftover_files_of_failed_cleanup_are_warned_about(tmp_path: Path, error: str, *, lasting: bool) -> None:
    """One error leaves no file on its way in or out; where the disk fails for good, the answer tells of them."""
    root = tmp_path / "workspace"
    said = 0
    for at in range(1, 1000):
        build(str(root))
        with open_workspace(str(root)) as workspace:
            with faults(at, ERRORS[error], lasting=lasting) as faulty:
                result = workspace.call("file", "file.write", {"path": "replace.txt", "content": f"new {at}"})
            spares = [name for name in os.listdir(root) if name.startswith(".handrail-")]
            kept = list(Path(workspace._services.state.path).glob("blobs/*.part"))
        told = any(".handrail-* files may contain the old contents" in warning for warning in result.warnings)
        assert told or not spares, at
        assert lasting or result.success or not spares, at
        assert lasting or not kept, at
        said += told
        if not faulty.reached:
            break
    assert said or not lasting


def test_short_writes_are_continued(stage: Stage) -> None:
    for at, answer, tree in every_point(stage, lambda: short):
        assert (answer, tree) == (True, "new"), at


def test_disk_that_fills_during_write_leaves_whole_tree(stage: Stage) -> None:
    for at, answer, _ in every_point(stage, ShortThenFull, lasting=True):
        assert after_reopening(stage) == ("new" if answer else "old"), at


def test_failed_recovery_allows_reads_and_next_open_completes_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open that cannot recover still lets files be read; writing waits until it can."""
    wrong = []
    for at in range(1, 1000):
        stage.reset()
        interrupted = leave_half_done(stage)
        with faults(at, failing(errno.EIO)) as faulty:
            workspace = open_workspace(stage.root)
        assert workspace.call("file", "file.read", {"path": "keep.txt"}).success
        workspace.close()
        if (tree := after_reopening(stage)) not in ("old", "new"):
            wrong.append((at, tree))
        if interrupted and not faulty.reached:
            break
    assert not wrong


def leave_half_done(stage: Stage) -> bool:
    """Let the disk fail when the commit publishes its last name."""
    with open_workspace(stage.root) as workspace, faults(10_000, failing(errno.EIO)) as counting:
        stage.act(workspace)
    publishing = max(
        n for n, name in enumerate(counting.calls, 1) if name in ("exchange_names", "link", "rename", "unlink")
    )
    stage.reset()
    with open_workspace(stage.root) as workspace, faults(publishing, failing(errno.EIO), lasting=True):
        stage.act(workspace)
    return True


@pytest.mark.slow
@pytest.mark.parametrize(
    "missing",
    [(), ("exchange_names",), ("exchange_names", "link")],
    ids=["all", "without exchange", "without hard links"],
)
@pytest.mark.parametrize("scene", SCENES)
def test_kill_during_commit_and_recovery_leaves_whole_tree(
    scene: str, missing: tuple[str, ...], tmp_path: Path
) -> None:
    stride = "1" if LONG else "5"
    here = os.path.dirname(__file__)
    run = subprocess.run(
        [sys.executable, os.path.join(here, "killing.py"), scene, str(tmp_path / "workspace"), stride, *missing],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join([here, *sys.path])},
        capture_output=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(run.stdout)
    assert found["wrong"] == []
    assert found["points"] >= 10
    assert found["recoveries"] >= 10
