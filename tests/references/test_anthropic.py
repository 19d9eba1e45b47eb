"""Compares `claude-agent` and `memory` with the reference implementations in the package `anthropic`."""

import re
from pathlib import Path
from typing import Any

import pytest
from references import cases_claude_agent, cases_claude_memory, drive_anthropic
from references.comparing import Answer, listed_differences, plant, through_handrail, tree

from handrail import Workspace

REFERENCES = {"claude-agent": cases_claude_agent.CASES, "claude": cases_claude_memory.CASES}


@pytest.mark.parametrize("dialect", REFERENCES)
def test_listed_differences_name_cases_and_reasons(dialect: str) -> None:
    listed = listed_differences(dialect)
    assert listed
    assert {*listed} <= {case.name for case in REFERENCES[dialect]}
    assert [name for name, reason in listed.items() if len(reason) < 20 or not reason.endswith(".")] == []


def _handrail(case: Any, dialect: str, root: Path) -> list[Answer]:
    with Workspace(str(root), approve="auto", hints=False) as workspace:
        router = workspace.tools(dialect)
        return [through_handrail(router, tool, params, root) for tool, params in case.calls]


def test_agent_toolset_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    found = {}
    for number, case in enumerate(cases_claude_agent.CASES):
        roots = []
        for side in ("reference", "handrail"):
            roots.append(tmp_path / f"{number}" / side)
            roots[-1].mkdir(parents=True)
            plant(case, roots[-1])
        answers = drive_anthropic.agent_toolset(case, roots[0]), _handrail(case, "claude-agent", roots[1])
        if answers[0] != answers[1] or tree(roots[0]) != tree(roots[1]):
            found[case.name] = answers
    assert {*found} == {*listed_differences("claude-agent")}, _shown(found, "claude-agent")


def test_memory_tool_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    found = {}
    for number, case in enumerate(cases_claude_memory.CASES):
        root = tmp_path / f"root{number}"
        root.mkdir()
        answers = drive_anthropic.memory_tool(case, tmp_path / f"memory{number}"), _handrail(case, "claude", root)
        if _without_directory_sizes(answers[0]) != _without_directory_sizes(answers[1]):
            found[case.name] = answers
    assert {*found} == {*listed_differences("claude")}, _shown(found, "claude")


def _without_directory_sizes(answers: list[Answer]) -> list[Answer]:
    """Return the answers without the sizes of directories, which depend on the file system and its history."""
    return [each._replace(content=re.sub(r"(?m)^\S+\t(/memories$|.*/$)", r"\1", each.content)) for each in answers]


def _shown(found: dict[str, Any], dialect: str) -> str:
    listed = listed_differences(dialect)
    new = {name: answers for name, answers in found.items() if name not in listed}
    return "\n".join(
        [
            *(f"{name}: {answers}"[:1500] for name, answers in new.items()),
            f"gone: {[n for n in listed if n not in found]}",
        ]
    )
