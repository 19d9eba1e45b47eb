"""Compares `claude-agent` and `memory` with the reference implementations in the package `anthropic`."""

import re
from pathlib import Path
from typing import Any

import pytest
from references import cases_claude_agent, cases_claude_memory, drive_anthropic
from references.comparing import Answer, assert_exactly_listed, planted, through_handrail, tree

from handrail import Workspace


def _handrail(case: Any, dialect: str, root: Path) -> list[Answer]:
    with Workspace(str(root), approve="auto", hints=False) as workspace:
        router = workspace.tools(dialect)
        return [through_handrail(router, tool, params, root) for tool, params in case.calls]


def test_agent_toolset_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    found = {}
    for number, case in enumerate(cases_claude_agent.CASES):
        # Names of one length: a limit may count the bytes of paths.
        roots = [planted(case, tmp_path / f"{number}" / side) for side in ("their", "other")]
        answers = drive_anthropic.agent_toolset(case, roots[0]), _handrail(case, "claude-agent", roots[1])
        if answers[0] != answers[1] or tree(roots[0]) != tree(roots[1]):
            found[case.name] = answers
    assert_exactly_listed(found, "claude-agent")


def test_memory_tool_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    found = {}
    for number, case in enumerate(cases_claude_memory.CASES):
        root = tmp_path / f"root{number}"
        root.mkdir()
        answers = drive_anthropic.memory_tool(case, tmp_path / f"memory{number}"), _handrail(case, "claude", root)
        if _without_directory_sizes(answers[0]) != _without_directory_sizes(answers[1]):
            found[case.name] = answers
    assert_exactly_listed(found, "claude")


def _without_directory_sizes(answers: list[Answer]) -> list[Answer]:
    """Return the answers without the sizes of directories, which depend on the file system and its history."""
    return [each._replace(content=re.sub(r"(?m)^\S+\t(/memories$|.*/$)", r"\1", each.content)) for each in answers]
