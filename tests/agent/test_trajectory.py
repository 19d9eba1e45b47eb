"""Tests that trajectories follow ATIF v1.7 at every moment, whatever the model and its server send."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from agent.atif import faults_in
from agent.conftest import call
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from handrail import Workspace
from handrail.agent import Agent, Budget
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory, TrajectoryError

READ = {"text": "I read.", "calls": [call("file.read", path="calc.py"), call("no_such_tool")]}
LONG = {"text": "thought " * 400, "calls": [call("file.write", path="a.txt", content="x" * 3000)]}
DONE = {"text": "Done."}


def strict(text: str) -> Any:
    """Parse JSON as strict programs do."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"JSON has no {name}"))


def saying(*parts: Any) -> FunctionModel:
    left = list(parts)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        yield left.pop(0)

    return FunctionModel(stream_function=stream, model_name="odd")


def test_file_follows_format_whenever_it_is_read(project: Path, workspace: Workspace, tmp_path: Path) -> None:
    path, ended, seen = tmp_path / "t.json", Event(), set[int]()
    faults: list[str] = []

    def watch() -> None:
        while not ended.is_set():
            if path.exists():
                found = strict(path.read_text())
                faults.extend(faults_in(found))
                seen.add(len(found["steps"]))

    def check(_: dict[str, Any]) -> None:
        faults.extend(faults_in(strict(path.read_text())))

    reader = Thread(target=watch)
    reader.start()
    try:
        model = ScriptedModel([READ, *[LONG] * 12, DONE])
        agent = Agent(workspace, model, dialect="file", trajectory=str(path), context_tokens=4500, on_event=check)
        assert agent.run("a long task").status == "done"
    finally:
        ended.set()
        reader.join()
    found = strict(path.read_text())
    assert (faults, faults_in(found)) == ([], [])
    assert any("summary" in step.get("extra", {}) for step in found["steps"])
    assert len(seen) > 1


@pytest.mark.parametrize("given", ["[1, 2]", '"text"', "7", "null", "no JSON", '{"path": NaN}', '{"path": 1e999}'])
def test_odd_arguments_follow_format(project: Path, workspace: Workspace, given: str, tmp_path: Path) -> None:
    model = saying({0: DeltaToolCall("file_read", given, tool_call_id="c1")}, "Done.")
    outcome = Agent(workspace, model, dialect="file").run("task")
    found = strict(Path(outcome.trajectory).read_text())
    (result,) = found["steps"][2]["observation"]["results"]
    assert (outcome.status, faults_in(found), result["extra"]["success"]) == ("done", [], False)
    replayed = Agent(workspace, ScriptedModel.of_answers(Trajectory.load(outcome.trajectory).answers), dialect="file")
    again = strict(Path(replayed.run("task").trajectory).read_text())
    assert again["steps"][2]["observation"]["results"] == [result]


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_trajectory_with_number_that_json_lacks_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "t.json"
    step = f'{{"source": "user", "message": "x", "extra": {{"n": {number}}}}}'
    path.write_text(f'{{"schema_version": "ATIF-v1.7", "steps": [{step}]}}')
    with pytest.raises(TrajectoryError, match=f"JSON has no number {number}"):
        Trajectory.load(str(path))


def test_totals_are_those_of_the_whole_run(project: Path, workspace: Workspace, tmp_path: Path) -> None:
    path, running = tmp_path / "t.json", list[Any]()
    model, half = ScriptedModel([READ, READ, DONE]), Budget(steps=1)
    stopped = Agent(workspace, model, dialect="file", budget=half, trajectory=str(path)).run("task")
    assert (stopped.status, strict(path.read_text())["extra"]["status"]) == ("steps", "steps")
    agent = Agent(
        workspace,
        ScriptedModel([READ, READ, DONE]),
        dialect="file",
        on_event=lambda _: running.append(strict(path.read_text())),
    )
    went_on = agent.resume(str(path))
    found = strict(path.read_text())
    each = [step["metrics"] for step in found["steps"] if step["source"] == "agent"]
    assert len(each) == stopped.steps + went_on.steps == 3
    assert found["final_metrics"]["total_completion_tokens"] == sum(one["completion_tokens"] for one in each)
    assert found["final_metrics"]["total_prompt_tokens"] == sum(one["prompt_tokens"] for one in each)
    assert not {"status", "reason"} & running[0]["extra"].keys()
    assert "final_metrics" not in running[0]


def test_answer_with_a_million_calls_is_refused(project: Path, workspace: Workspace, tmp_path: Path) -> None:

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        for n in range(10**6):
            yield {n: DeltaToolCall("file_list", "{}", tool_call_id="same")}

    outcome = Agent(workspace, FunctionModel(stream_function=stream), dialect="file").run("task")
    assert (outcome.status, outcome.steps) == ("model_error", 0)
    assert "of text and calls" in outcome.reason
