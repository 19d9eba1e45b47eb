"""Tests what an attacker, a broken program or a careless user can give the agent: files, texts, calls, handlers."""

import copy
import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.conftest import call
from agent.wire import KEY, WIRES
from support.command_line import ARGV, at_terminal, handrail
from support.model_server import Called, Offered, Refuse, Say, serve

from handrail import Workspace
from handrail.agent import Agent
from handrail.chat import model_errors
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory, TrajectoryError

Script = Callable[..., str]
ODD: tuple[Any, ...] = (None, 7, -5, True, "x", [], {}, [1], {"a": 1})
ESCAPE = "\x1b[31mred\x9b1m"
WRITE = {"text": "I write.", "calls": [call("file.write", path="a.txt", content="1")]}
DONE = {"text": "Done."}


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value in a JSON document."""
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from places(each, (*place, name))


def with_odd(document: Any, place: tuple[Any, ...], odd: Any) -> Any:
    changed = {"whole": copy.deepcopy(document)}
    *above, last = ("whole", *place)
    target: Any = changed
    for name in above:
        target = target[name]
    target[last] = odd
    return changed["whole"]


def test_trajectory_with_any_odd_value_is_read_or_refused(workspace: Workspace, tmp_path: Path) -> None:
    outcome = Agent(workspace, ScriptedModel([WRITE, DONE]), dialect="file").run("task")
    whole = json.loads(Path(outcome.trajectory).read_text())
    whole["agent"], path = {}, tmp_path / "odd.json"
    refused = 0
    for place in places(whole):
        for odd in ODD:
            path.write_text(json.dumps(with_odd(whole, place, odd)))
            try:
                found = Trajectory.load(str(path))
            except TrajectoryError:
                refused += 1
            else:
                assert isinstance(found.task + found.instructions + "".join(found.sessions), str)
                assert isinstance(found.open_calls() + found.messages(), list)
                ScriptedModel.of_answers(found.answers)
    assert refused > 100


@pytest.mark.parametrize("option", ["--resume", "--replay"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        '{"schema_version": "ATIF-v1.7", "steps": []}',
        '{"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "message": "x", "tool_calls": [{}]}]}',
        '{"schema_version": "ATIF-v1.7", "extra": {"dialect": "nope"}, "steps": [{"source": "user", "message": "x"}]}',
    ],
    ids=["empty", "deep", "no step", "no name", "unknown dialect"],
)
def test_command_with_hostile_trajectory_is_a_usage_error(
    root: Path, script: Script, tmp_path: Path, option: str, text: str
) -> None:
    (tmp_path / "t.json").write_text(text)
    done = handrail("agent", option, str(tmp_path / "t.json"), "--model", script(DONE), "--root", str(root))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def _leads_out(path: Path) -> None:
    secret = path.parent.parent / "secret.txt"
    secret.write_text("SECRET")
    path.symlink_to(secret)


def _protected(path: Path) -> None:
    path.with_name(".env").write_text("SECRET")
    path.symlink_to(".env")


@pytest.mark.parametrize("plant", [_pipe, _huge, _leads_out, _protected, Path.mkdir])
def test_hostile_guide_neither_hangs_nor_leaks(project: Path, plant: Callable[[Path], None]) -> None:
    plant(project / "AGENTS.md")
    with Workspace(str(project), approve="auto", protect=[".env"]) as workspace:
        outcome = Agent(workspace, ScriptedModel([DONE]), dialect="file").run("task")
    said = Trajectory.load(outcome.trajectory).instructions
    assert outcome.status == "done"
    assert "SECRET" not in said
    assert len(said) < 200_000


def test_command_reads_guide_of_current_directory(root: Path, script: Script, tmp_path: Path) -> None:
    (root / "pkg").mkdir()
    (root / "pkg" / "AGENTS.md").write_text("NEAR GUIDE")
    path = tmp_path / "t.json"
    arguments = ("agent", "task", "--model", script(DONE), "--root", str(root), "--trajectory", str(path))
    assert handrail(*arguments, cwd=root / "pkg").returncode == 0
    assert "NEAR GUIDE" in Trajectory.load(str(path)).instructions
    assert handrail(*arguments).returncode == 0
    assert "NEAR GUIDE" not in Trajectory.load(str(path)).instructions


def test_escapes_of_model_never_reach_terminal(root: Path, script: Script) -> None:
    odd = {"text": ESCAPE, "calls": [call(ESCAPE, **{ESCAPE: ESCAPE}), call("file.write", path="a", content=ESCAPE)]}
    name = script(odd, {"text": ESCAPE})
    done = at_terminal("agent", "task", "--model", name, "--dialect", "file", "--root", str(root), "--approve", "auto")
    shown = done.stdout + done.stderr
    assert done.returncode == 0
    assert "\\x1b[31mred" in shown
    assert "\x1b[31m" not in shown
    assert "\x9b" not in shown


def test_escapes_of_server_never_reach_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    refusal = Refuse(400, json.dumps({"error": {"message": ESCAPE}}).encode())
    with serve(lambda _: refusal) as server:
        options = ("--model", "openai:qwen3", "--base-url", f"{server.url}/v1", "--root", str(root))
        done = at_terminal("agent", "task", *options)
    assert done.returncode == 1
    assert "\x1b[31m" not in done.stderr


def test_error_of_event_handler_comes_out_unchanged(project: Path, workspace: Workspace) -> None:
    seen: list[str] = []

    def handler(event: dict[str, Any]) -> None:
        seen.append(event["type"])
        raise BrokenPipeError("the reader is gone")

    with pytest.raises(BrokenPipeError, match="the reader is gone"):
        Agent(workspace, ScriptedModel([WRITE, DONE]), dialect="file", on_event=handler).run("task")
    assert seen == ["text"]


def test_command_whose_reader_goes_away_ends_quietly(root: Path, script: Script) -> None:
    many = [{"text": "x" * 10_000, "calls": [call("file.list", path=".")]}] * 50
    command = [*ARGV, "agent", "task", "--model", script(*many), "--root", str(root), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 1


def test_half_of_surrogate_pair_is_replaced(root: Path, script: Script) -> None:
    done = handrail("agent", "task", "--model", script({"text": "\ud800"}), "--root", str(root), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["answer"] == "\ufffd"


@pytest.mark.parametrize("name", ["/dev/null", "missing/t.json", "."])
def test_trajectory_that_cannot_be_written_is_refused(root: Path, script: Script, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    done = handrail("agent", "task", "--model", script(WRITE, DONE), "--root", str(root), "--trajectory", path)
    assert done.returncode == 2
    assert "rajectory" in done.stderr or "directory" in done.stderr
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert not list(root.iterdir())


def test_two_agents_on_one_trajectory_leave_valid_file(root: Path, script: Script, tmp_path: Path) -> None:
    many = [{"text": "x" * 1000, "calls": [call("file.list", path=".")]}] * 10
    path = tmp_path / "t.json"
    command = [*ARGV, "agent", "task", "--model", script(*many, DONE), "--root", str(root), "--trajectory", str(path)]
    with subprocess.Popen(command) as first, subprocess.Popen(command) as second:
        pass
    assert 0 in (first.returncode, second.returncode)
    assert {first.returncode, second.returncode} <= {0, 2}  # the second is refused, unless the first has ended before
    assert Trajectory.load(str(path)).head["extra"]["status"] == "done"
    assert [each.name for each in tmp_path.glob(".handrail-*")] == []


def test_answer_with_two_hundred_calls_gets_all_results(project: Path, workspace: Workspace) -> None:
    calls = [call("file.write", path=f"{n}.txt", content=str(n)) for n in range(200)]
    outcome = Agent(workspace, ScriptedModel([{"calls": calls}, DONE]), dialect="file").run("task")
    (first, _) = Trajectory.load(outcome.trajectory).answers
    assert [each["extra"]["success"] for each in first["observation"]["results"]] == [True] * 200
    assert (project / "199.txt").read_text() == "199"


@pytest.mark.parametrize("arguments", [[1, 2], "text", 7, None], ids=["list", "text", "number", "null"])
@pytest.mark.parametrize("name", WIRES)
def test_arguments_that_are_no_object_are_answered(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, name: str, arguments: Any
) -> None:
    wire, left = WIRES[name], [1, 2]
    monkeypatch.setenv(wire.key, KEY)
    monkeypatch.setattr(model_errors, "FIRST_WAIT_SECONDS", 0.0)
    before = (project / "calc.py").read_text()
    with serve(
        lambda _: Called(f"c{left.pop()}", Offered(wire.call.tool), arguments) if left else Say("End.")
    ) as server:
        outcome = Agent(workspace, wire.model, base_url=f"{server.url}{wire.path}").run("task")
    assert (outcome.status, outcome.answer) == ("done", "End.")
    assert (project / "calc.py").read_text() == before
