"""Tests the text of questions."""

import time
from pathlib import Path

import pytest

from handrail import Question, Verdict, Workspace
from handrail.surfaces.approval_text import happening, whole


@pytest.mark.parametrize(("dialect", "tool"), [("claude-code", "Write"), ("gemini", "write_file")])
def test_diff_of_absolute_path_names_it_from_root(root: Path, dialect: str, tool: str) -> None:
    asked: list[Question] = []

    def refuse(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.deny("no")

    with Workspace(str(root), approver=refuse) as workspace:
        workspace.call(dialect, tool, {"file_path": f"{root}/sub/new.txt", "content": "x\n"})
    (question,) = asked
    assert happening(question, whole())[0] == "diff --git a/sub/new.txt b/sub/new.txt"


@pytest.mark.sandbox
def test_wall_time_leaves_out_the_time_for_the_answer(root: Path) -> None:
    def later(_: Question) -> Verdict:
        time.sleep(1)  # the user's own time
        return Verdict.allow()

    with Workspace(str(root), approver=later) as workspace:
        result = workspace.call("codex-2026", "exec_command", {"cmd": "true"})
    assert isinstance(result.output, dict)
    assert result.output["wall_time_seconds"] <= result.execution_time_ms / 1000
