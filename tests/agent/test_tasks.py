"""Plays twenty tasks in every dialect through the loop, with a scripted model; each ends with the expected tree."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent.spelling import fails_in_text, spelled

from handrail import Workspace
from handrail.agent import Agent
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory
from handrail.dialects import NAMES
from handrail.model.approval import Question, Verdict

TASKS = tomllib.loads((Path(__file__).parent / "tasks.toml").read_text())["task"]
BY_NAME = {task["name"]: task for task in TASKS}
FAILED = re.compile(r"no such text|No such file|Read-only|[Dd]enied|not permitted|required|missing|\b0 replacements")


def test_tasks_are_twenty() -> None:
    assert len(BY_NAME) == len(TASKS) == 20


@pytest.mark.sandbox
@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("dialect", NAMES)
def test_task_ends_with_expected_tree(dialect: str, name: str, root: Path) -> None:
    task = BY_NAME[name]
    for path, text in task["before"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    calls = {n: call for n, step in enumerate(task["steps"]) if (call := spelled(dialect, step, root))}
    with opened(root, task) as workspace:
        model = ScriptedModel(turns(list(calls.values()), together=task.get("together", False)))
        outcome = Agent(workspace, model, dialect=dialect).run(name)
    assert (outcome.status, outcome.answer) == ("done", "Done.")
    results = [r for answer in Trajectory.load(outcome.trajectory).answers for r in results_of(answer)]
    for n, result in zip(calls, results, strict=True):
        step = task["steps"][n]
        assert failed(result, by_text=fails_in_text(dialect, step)) == step[0].startswith("!"), (step, result)
    wanted = task["before"] | task["after"]
    found = {str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()}
    assert found == {path: text for path, text in wanted.items() if text != "<gone>"}
    assert not Path("/etc/handrail-outside.txt").exists()


def opened(root: Path, task: dict[str, Any]) -> Workspace:
    sandbox: Any = None if task.get("sandbox") else "off"
    if task.get("denied"):
        return Workspace(str(root), approver=denies_first(), sandbox=sandbox)
    return Workspace(str(root), approve="auto", sandbox=sandbox)


def denies_first() -> Callable[[Question], Verdict]:
    left = [Verdict.deny("not this one", decided_by="user")]
    return lambda _: left.pop() if left else Verdict.allow(decided_by="user")


def turns(calls: list[dict[str, Any]], *, together: bool) -> list[dict[str, Any]]:
    answers = [calls] if together else [[call] for call in calls]
    return [*({"text": "I work.", "calls": each} for each in answers), {"text": "Done."}]


def results_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer.get("observation", {}).get("results", [])
    return found


def failed(result: dict[str, Any], *, by_text: bool) -> bool:
    """Say whether a call failed."""
    return not result["extra"]["success"] or (by_text and bool(FAILED.search(result["content"])))
