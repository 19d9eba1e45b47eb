"""Tests how the changes of a layer come into a root that other processes change meanwhile, and odd changes."""

import os
import subprocess
from pathlib import Path

import pytest
from support.layers import needs_overlays

from handrail import Workspace

pytestmark = [needs_overlays, pytest.mark.sandbox]


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "sub/deep").mkdir(parents=True)
    (root / "a.txt").write_text("old\n")
    (root / "sub/b.txt").write_text("b\n")
    (root / "sub/deep/c.txt").write_text("c\n")
    (root / "link").symlink_to("a.txt")
    return root


def opened(tree: Path, layered: bool | str = True) -> Workspace:
    return Workspace(tree, approve="auto", layered=layered)


def sh(workspace: Workspace, text: str) -> str:
    ran = workspace.exec(["sh", "-c", text])
    return (ran.stdout + ran.stderr).decode()


def replace(path: Path, text: str) -> None:
    """Write a file as most editors do."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def conflicts(workspace: Workspace) -> list[str]:
    plan = workspace.apply()
    assert plan.done is not bool(plan.conflicts)
    return [each.path for each in plan.conflicts]


def test_apply_command_that_did_not_see_change_of_root_is_a_conflict(tree: Path) -> None:
    with opened(tree) as workspace:
        assert sh(workspace, "cat a.txt") == "old\n"
        replace(tree / "a.txt", "of the user\n")
        sh(workspace, "echo more >>a.txt")  # the kernel may still have shown it the old file
        if workspace.read_bytes("a.txt") != b"of the user\nmore\n":
            assert conflicts(workspace) == ["a.txt"]
            assert (tree / "a.txt").read_text() == "of the user\n"


def test_apply_fork_after_another_one_neither_hides_its_change_nor_loses_it(tree: Path) -> None:
    with opened(tree) as parent:
        one, two = parent.fork(2)
        for each in (one, two):
            each.read_bytes("a.txt")
        sh(one, "echo one >a.txt")
        assert conflicts(one) == []
        sh(two, "echo two >>a.txt; echo 2 >other")
        found = conflicts(two)
        assert found == ["a.txt"] or (tree / "a.txt").read_text() == "one\ntwo\n"
        for each in (one, two):
            each.close()


@pytest.mark.parametrize("name", ["node_modules/x.js", "dist/.venv/y.py"])
def test_apply_file_without_journal_that_changed_in_root_is_a_conflict(tree: Path, name: str) -> None:
    (tree / name).parent.mkdir(parents=True)
    (tree / name).write_text("1\n")
    with opened(tree) as workspace:
        sh(workspace, f"echo layer >{name}")
        (tree / name).write_text("user\n")
        assert conflicts(workspace) == [name]
        assert (tree / name).read_text() == "user\n"
        workspace.discard()
        sh(workspace, f"echo layer >{name}")
        assert conflicts(workspace) == []
    assert (tree / name).read_text() == "layer\n"


def test_apply_directory_that_became_file_and_file_that_became_directory(tree: Path) -> None:
    before = shape(tree)
    with opened(tree) as workspace:
        sh(workspace, "rm -r sub; echo f >sub; rm a.txt; mkdir a.txt; echo in >a.txt/in; rm link; mkdir link")
        kinds = {each.path: each.kind for each in workspace.changes()}
        assert kinds["sub/deep/c.txt"] == "deleted"
        assert conflicts(workspace) == []
    assert shape(tree) == {"a.txt": None, "a.txt/in": "in\n", "link": None, "sub": "f\n"}
    with Workspace(tree, approve="auto") as plain:
        plain.history().undo()
    assert shape(tree) == before


def test_undo_in_layer_restores_directory_that_became_file(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "rm -r sub; echo f >sub")
        workspace.history().undo()
        assert sh(workspace, "cat sub/b.txt sub/deep/c.txt") == "b\nc\n"
        assert workspace.changes() == []


def test_apply_directory_that_got_a_file_in_root_meanwhile_keeps_it(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "rm -r sub; echo f >sub")
        (tree / "sub/new").write_text("of the user\n")
        assert "sub" in conflicts(workspace)
        assert (tree / "sub/new").read_text() == "of the user\n"
        assert (tree / "sub/b.txt").read_text() == "b\n"


def test_apply_file_that_is_gone_in_root_is_a_conflict(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "echo layer >>a.txt; echo layer >>sub/b.txt")
        (tree / "a.txt").unlink()
        assert conflicts(workspace) == ["a.txt"]
        assert not (tree / "a.txt").exists()


def test_changes_and_snapshot_show_nothing_that_the_sandbox_made(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", tree], check=True)
    with opened(tree) as workspace, Workspace(tree, approve="auto") as plain:
        snapshot = workspace.snapshot()
        for each in (workspace, plain):
            sh(each, "git status; true")
        assert workspace.changes() == []
        with Workspace.open(snapshot, approve="auto") as again:  # the root has the same content for a snapshot
            assert again.changes() == []


def test_discard_is_one_step_and_leaves_nothing(tree: Path) -> None:
    with opened(tree) as workspace:
        sh(workspace, "echo 1 >n; rm a.txt")
        workspace.fork()[0].close()
        sh(workspace, "echo 2 >m")
        workspace.discard()
        assert workspace.changes() == []
        assert sh(workspace, "ls") == "a.txt\nlink\nsub\n"
        assert os.listdir(f"{workspace._services.layer.store.path}/frozen") == []  # type: ignore[union-attr]


def shape(tree: Path) -> dict[str, str | None]:
    """Return the content of each file, the target of each link, and None for each directory."""
    return {
        str(path.relative_to(tree)): f"-> {path.readlink()}"
        if path.is_symlink()
        else None
        if path.is_dir()
        else path.read_text()
        for path in sorted(tree.rglob("*"))
    }
