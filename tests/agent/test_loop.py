"""Tests the loop in the library: steps, budgets, mistakes, denied calls, trajectories."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agent.conftest import call
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from handrail import Workspace
from handrail.agent import Agent, Budget
from handrail.agent import loop as agent_loop
from handrail.chat import model_errors
from handrail.chat.scripted import ScriptedModel, ScriptError
from handrail.chat.trajectory import Trajectory, TrajectoryError

READ = {"text": "I read.", "calls": [call("file.read", path="calc.py")]}
MEND = {
    "text": "I mend.",
    "calls": [call("file.patch", path="calc.py", patches=[{"find": "a - b", "replace": "a + b"}])],
}
DONE = {"text": "add() adds now."}
Script = Callable[..., str]


def failing(*outcomes: Exception | str) -> FunctionModel:
    """Return a model that raises or says one outcome after the other."""
    left = list(outcomes)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        yield outcome

    return FunctionModel(stream_function=stream, model_name="failing")


def test_run_with_script_ends_with_expected_tree(project: Path, workspace: Workspace, script: Script) -> None:
    outcome = Agent(workspace, script(READ, MEND, DONE)).run("mend add")
    assert (outcome.status, outcome.answer, outcome.steps) == ("done", "add() adds now.", 3)
    assert (project / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


def test_task_sets_mark_to_which_undo_goes_back(project: Path, workspace: Workspace, script: Script) -> None:
    before = (project / "calc.py").read_text()
    assert Agent(workspace, script(READ, MEND, DONE)).run("fix\nit").status == "done"
    assert (project / "calc.py").read_text() != before
    assert [mark.name for mark in workspace.history().marks()] == ["task: fix\\nit"]
    assert workspace.history().undo(to="task: fix\\nit").done
    assert (project / "calc.py").read_text() == before


def test_trajectory_is_valid_after_every_event(
    project: Path, workspace: Workspace, script: Script, tmp_path: Path
) -> None:
    path, seen = tmp_path / "t.json", []

    def check(_: dict[str, Any]) -> None:
        found = json.loads(path.read_text())
        assert found["schema_version"] == "ATIF-v1.7"
        assert [step["step_id"] for step in found["steps"]] == list(range(1, len(found["steps"]) + 1))
        seen.append(len(found["steps"]))

    Agent(workspace, script(READ, MEND, DONE), trajectory=str(path), on_event=check).run("mend add")
    found = json.loads(path.read_text())
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "agent", "agent"]
    results = found["steps"][3]["observation"]["results"]
    assert (results[0]["source_call_id"], results[0]["extra"]["files_affected"]) == ("call_2_1", ["calc.py"])
    assert found["final_metrics"]["total_steps"] == 5
    assert found["extra"]["status"] == "done"
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("budget", "status"),
    [(Budget(steps=2), "steps"), (Budget(tokens=10), "tokens"), (Budget(seconds=1e-6), "seconds")],
)
def test_run_over_budget_ends_with_its_name(
    project: Path, workspace: Workspace, script: Script, budget: Budget, status: str
) -> None:
    outcome = Agent(workspace, script(READ, READ, READ, DONE), budget=budget).run("read")
    assert outcome.status == status
    assert outcome.exit_code not in (0, 1)
    assert Trajectory.load(outcome.trajectory).head["extra"]["status"] == status


def test_run_with_known_price_stops_at_money_budget(project: Path, workspace: Workspace) -> None:
    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        from pydantic_ai.models.function import DeltaToolCall

        yield {0: DeltaToolCall("file_read", '{"path": "calc.py"}')}

    model = FunctionModel(stream_function=stream, model_name="gpt-4o")
    outcome = Agent(workspace, model, dialect="file", budget=Budget(money=1e-9)).run("read")
    assert outcome.status == "money"
    assert outcome.money


def test_run_whose_price_is_unknown_spends_no_money(project: Path, workspace: Workspace, script: Script) -> None:
    outcome = Agent(workspace, script(READ, DONE), budget=Budget(money=1)).run("read")
    assert (outcome.status, outcome.steps, outcome.money) == ("money", 0, None)
    assert "price of the model is unknown" in outcome.reason


@pytest.mark.sandbox
def test_run_out_of_time_ends_running_command(project: Path, workspace: Workspace, script: Script) -> None:
    waits = {"calls": [call("bash", command="touch begun; sleep 600")]}
    outcome = Agent(workspace, script(waits), dialect="bash", budget=Budget(seconds=20)).run("wait")
    assert outcome.status == "seconds"
    workspace.close()  # waits for running calls


def test_denied_call_is_an_answer_and_loop_goes_on(project: Path, script: Script) -> None:
    with Workspace(str(project)) as workspace:
        outcome = Agent(workspace, script(MEND, DONE)).run("mend add")
    assert outcome.status == "done"
    result = Trajectory.load(outcome.trajectory).answers[0]["observation"]["results"][0]
    assert result["extra"]["error"] == "approval_denied"


def test_model_that_calls_unknown_tools_ends_confused(project: Path, workspace: Workspace, script: Script) -> None:
    turns = [{"calls": [call("no_such_tool")]}] * 50
    outcome = Agent(workspace, script(*turns)).run("mend add")
    assert (outcome.status, outcome.steps) == ("confused", agent_loop.MISTAKES)


def test_model_that_says_nothing_is_told_to_go_on(project: Path, workspace: Workspace, script: Script) -> None:
    outcome = Agent(workspace, script({"text": ""}, DONE)).run("mend add")
    assert (outcome.status, outcome.answer) == ("done", "add() adds now.")
    assert [step["source"] for step in Trajectory.load(outcome.trajectory).steps][-2:] == ["user", "agent"]


def test_wrong_key_ends_run_without_retry(project: Path, workspace: Workspace) -> None:
    events: list[dict[str, Any]] = []
    refused = ModelHTTPError(401, "failing", {"error": "wrong key sk-abcdefghijklmnopqrstuvwxyz"})
    outcome = Agent(workspace, failing(refused), dialect="file", on_event=events.append).run("mend add")
    assert outcome.status == "model_error"
    assert "401" in outcome.reason
    assert "abcdefghijklmnop" not in outcome.reason
    assert [event["type"] for event in events] == ["end"]


def test_server_errors_are_survived(project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_errors, "FIRST_WAIT_SECONDS", 0.0)
    faults = [ModelHTTPError(code, "failing") for code in (500, 429, 529)]
    outcome = Agent(workspace, failing(*faults, "done"), dialect="file").run("mend add")
    assert (outcome.status, outcome.answer) == ("done", "done")


def test_server_that_always_fails_ends_run(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_errors, "FIRST_WAIT_SECONDS", 0.0)
    faults = [ModelHTTPError(500, "failing")] * (model_errors.RETRIES + 1)
    outcome = Agent(workspace, failing(*faults, "too late"), dialect="file").run("mend add")
    assert outcome.status == "model_error"


def test_silent_model_ends_run(project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    import anyio

    monkeypatch.setattr(model_errors, "FIRST_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(model_errors, "IDLE_SECONDS", 0.01)

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        await anyio.sleep_forever()
        yield ""

    model = FunctionModel(stream_function=stream, model_name="silent")
    outcome = Agent(workspace, model, dialect="file").run("mend add")
    assert outcome.status == "model_error"
    assert "sent nothing" in outcome.reason


def test_long_run_leaves_old_results_out_then_summarises(project: Path, workspace: Workspace) -> None:
    (project / "big.txt").write_text("x" * 79 + "\n" * 1 + ("line of text\n" * 400))
    sizes: list[int] = []
    asked: list[str] = []
    turns = iter(range(60))

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        from pydantic_ai.models.function import DeltaToolCall

        sizes.append(sum(len(str(part)) for message in messages for part in message.parts))
        if not info.function_tools:
            asked.append("summary")
            yield "So far I read the file."
        elif (n := next(turns)) < 40:
            text = f"thought {n} " * 40
            yield text
            yield {1: DeltaToolCall("file_read", '{"path": "big.txt"}', tool_call_id=f"c{n}")}
        else:
            yield "done"

    model = FunctionModel(stream_function=stream, model_name="small")
    events: list[dict[str, Any]] = []
    agent = Agent(workspace, model, dialect="file", context_tokens=12_000, on_event=events.append)
    outcome = agent.run("read it often")
    assert outcome.status == "done"
    assert asked
    assert any(event["type"] == "compact" for event in events)
    assert max(sizes) < 12_000 * 4 * 1.5


def test_guides_come_nearest_first(project: Path, workspace: Workspace, script: Script) -> None:
    (project / "AGENTS.md").write_text("ROOT GUIDE")
    (project / "pkg").mkdir()
    (project / "pkg" / "CLAUDE.md").write_text("NEAR GUIDE")
    outcome = Agent(workspace, script(DONE), directory="pkg").run("task")
    said = Trajectory.load(outcome.trajectory).instructions
    assert 0 < said.index("NEAR GUIDE") < said.index("ROOT GUIDE")


@pytest.mark.parametrize("text", ["{", "[1]", '{"text": 1}', '{"calls": [{"name": "x"}]}', '{"says": "x"}'])
def test_script_that_is_not_valid_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(ScriptError):
        ScriptedModel.load(str(tmp_path / "s"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": "ATIF-v1.7", "steps": 1}'])
def test_trajectory_that_is_not_valid_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(TrajectoryError):
        Trajectory.load(str(tmp_path / "t"))
