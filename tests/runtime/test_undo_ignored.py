"""Checks that undo covers directories that ignore files exclude, and says beforehand what it cannot restore."""

import shutil
from pathlib import Path

import pytest

from handrail import ToolResult, Workspace

pytestmark = pytest.mark.sandbox


def shell(workspace: Workspace, command: str) -> ToolResult:
    return workspace.call("codex", "shell", {"command": command})


def partial(result: ToolResult) -> list[str]:
    return [each for each in result.warnings if each.startswith("undo cannot restore")]


@pytest.fixture
def project(root: Path) -> Path:
    (root / ".gitignore").write_text("data/\nlogs/*\n")
    for name in ("data/a.csv", "data/deep/b.csv", "logs/today/l", "src/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


def test_deleted_ignored_directory_comes_back(project: Path) -> None:
    with Workspace(str(project), approve="auto") as workspace:
        deleted = shell(workspace, "rm -r data logs; echo new > src/y")
        assert not (project / "data").exists()
        assert partial(deleted) == []
        assert "data/deep/b.csv" in deleted.files_affected
        workspace.history().undo()
    assert (project / "data/deep/b.csv").read_text() == "data/deep/b.csv"
    assert (project / "logs/today/l").read_text() == "logs/today/l"
    assert not (project / "src/y").exists()


def test_large_ignored_directory_is_named_by_first_command_only(project: Path) -> None:
    with Workspace(str(project), approve="auto", limits={"scan_ignored_files": 1}) as workspace:
        first, second = shell(workspace, "true"), shell(workspace, "rm -r data")
        assert "data/" in partial(first)[0]
        assert "logs/today" not in partial(first)[0]
        assert (partial(second), second.files_affected) == ([], [])


def test_large_file_is_named_by_first_command(project: Path) -> None:
    (project / "big").write_bytes(b"x" * 2000)
    with Workspace(str(project), approve="auto", limits={"scan_file_bytes": 1000}) as workspace:
        assert "in big:" in partial(shell(workspace, "true"))[0]


def test_files_of_project_are_kept_before_ignored_ones(project: Path) -> None:
    (project / "data/newest").write_text("n" * 50)
    limits = {"scan_kept_files": 2}
    with Workspace(str(project), approve="auto", limits=limits) as workspace:
        shell(workspace, "rm src/x")
        workspace.history().undo()
    assert (project / "src/x").exists()


def test_ignored_directory_that_command_makes_is_removed_by_undo(project: Path) -> None:
    shutil.rmtree(project / "data")
    with Workspace(str(project), approve="auto") as workspace:
        shell(workspace, "mkdir data; echo x > data/new")
        workspace.history().undo()
    assert not (project / "data").exists()
