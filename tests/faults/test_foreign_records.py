"""Checks that an intent is for one directory: it waits while another has its path, and changes nothing in a copy."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from faults.scenes import Stage, left_over, open_workspace
from support.fault_injection import failing, faults
from support.tree import snapshot

from handrail.kernel.host.state_dir import State

SCENES = ("replace", "delete", "four files", "directories come and go")


@pytest.fixture(params=SCENES)
def half_done(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    return leave_half_done(request.param, str(tmp_path / "workspace"))


def test_intent_waits_while_another_directory_has_its_path(half_done: Stage, tmp_path: Path) -> None:
    os.rename(half_done.root, tmp_path / "elsewhere")
    half_done.reset()
    for _ in range(2):
        with open_workspace(half_done.root) as workspace:
            assert (workspace.recovered, half_done.tree(), workspace.warnings) == (0, "old", [])
            assert workspace.call("file", "file.write", {"path": "keep.txt", "content": "keep\n"}).success
    shutil.rmtree(half_done.root)
    os.rename(tmp_path / "elsewhere", half_done.root)
    is_put_right(half_done)


def test_intent_is_recovered_after_disk_gets_new_device_number(half_done: Stage) -> None:
    """Only its device number is another."""
    rewrite_root(half_done, device=1)
    is_put_right(half_done)


def test_intent_changes_nothing_in_copy_with_same_inode(half_done: Stage, tmp_path: Path) -> None:
    """The spare name may hold the only original."""
    shutil.copytree(half_done.root, tmp_path / "copy", symlinks=True)
    os.rename(half_done.root, tmp_path / "elsewhere")
    os.rename(tmp_path / "copy", half_done.root)
    rewrite_root(half_done, inode=os.stat(half_done.root).st_ino)
    before = snapshot(half_done.root)
    with open_workspace(half_done.root) as workspace:
        assert (workspace.recovered, snapshot(half_done.root)) == (0, before)
    shutil.rmtree(half_done.root)
    os.rename(tmp_path / "elsewhere", half_done.root)
    rewrite_root(half_done, inode=os.stat(half_done.root).st_ino)
    is_put_right(half_done)


def test_spare_file_in_copied_directory_is_kept(tmp_path: Path) -> None:
    stage = leave_half_done("four files", str(tmp_path / "workspace"))
    shutil.copytree(f"{stage.root}/sub", f"{stage.root}/copy", symlinks=True)
    shutil.rmtree(f"{stage.root}/sub")
    os.rename(f"{stage.root}/copy", f"{stage.root}/sub")
    before = snapshot(f"{stage.root}/sub")
    with open_workspace(stage.root) as workspace:
        assert workspace.recovered == 1
    assert snapshot(f"{stage.root}/sub") == before
    assert (Path(stage.root) / "replace.txt").read_bytes() == b"old\n" * 9
    assert not left_over(workspace)


def is_put_right(stage: Stage) -> None:
    with open_workspace(stage.root) as workspace:
        assert (workspace.recovered, stage.tree()) == (1, "old")
    assert not left_over(workspace)


def leave_half_done(scene: str, root: str) -> Stage:
    """Let the disk fail when all names are published and the third line of the intent is to be written."""
    stage = Stage.of(scene, root)
    stage.reset()
    with open_workspace(root) as workspace, faults(10_000, failing(errno.EIO)) as counting:
        stage.act(workspace)
    *_, done = [n for n, name in enumerate(counting.calls, 1) if name == "pwrite"][:3]
    stage.reset()
    with open_workspace(root) as workspace, faults(done, failing(errno.EIO), lasting=True):
        stage.act(workspace)
    assert stage.tree().startswith("neither")
    return stage


def rewrite_root(stage: Stage, **numbers: int) -> None:
    """Write another device or inode number of its directory into the intent."""
    pending = State.of(stage.root).pending
    (name,) = os.listdir(pending)
    *_, last = Path(pending, name).read_text().splitlines()
    facts = json.loads(last)
    facts["root"] = [numbers.get("device", facts["root"][0]), numbers.get("inode", facts["root"][1])]
    Path(pending, name).write_text(json.dumps(facts) + "\n")
