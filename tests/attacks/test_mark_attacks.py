"""Attacks the marks of the history: a model must not make `undo --to MARK` take back less than the user expects."""

from pathlib import Path

import pytest

from handrail import Workspace


@pytest.mark.parametrize("name", ["before the task", "  before the task "])
def test_mark_tool_cannot_move_the_mark_of_the_user(root: Path, name: str) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        tools = workspace.tools("file", with_undo=True)
        workspace.mark("before the task")
        assert tools.call("file.write", {"path": "early.txt", "content": "1\n"}).success
        moved = tools.call("mark", {"name": name})
        assert moved.error is not None
        assert moved.error.code == "undo_failed"
        assert tools.call("file.write", {"path": "late.txt", "content": "2\n"}).success
        workspace.history().undo(to="before the task")
    assert not (root / "early.txt").exists()
    assert not (root / "late.txt").exists()
