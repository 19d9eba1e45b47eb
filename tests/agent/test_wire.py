"""Tests the agent over the real wire: a scripted model on loopback that speaks four APIs, and its faults."""

import json
from pathlib import Path
from typing import Any

import pytest
from agent.wire import ANSWER, KEY, MENDED, WIRES, Wire
from support.command_line import Done, handrail
from support.loopback_server import Site
from support.model_server import Called, Cut, Offered, Refuse, Say, Use, faulty, scripted, serve
from support.model_server.script import Fault

from handrail import Workspace
from handrail.agent import Agent, Outcome
from handrail.agent import loop as agent_loop
from handrail.chat import model_errors
from handrail.chat.trajectory import Trajectory

Events = list[dict[str, Any]]
WRONG = Refuse(401, json.dumps({"error": {"message": f"wrong key {KEY}", "type": "authentication_error"}}).encode())
GARBAGE = Refuse(200, b"<html>\x00\xff not an answer")


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wire:
    found = WIRES[request.param]
    monkeypatch.setenv(found.key, KEY)
    monkeypatch.setattr(model_errors, "FIRST_WAIT_SECONDS", 0.0)
    return found


def command(project: Path, wire: Wire, *options: str) -> Done:
    return handrail("agent", "mend add", "--model", wire.model, "--root", str(project), "--approve", "auto", *options)


def run(workspace: Workspace, wire: Wire, *faults: Fault) -> tuple[Outcome, Events, int]:
    """Run the task with a server that has these faults first; return the outcome, the events and the requests."""
    events: Events = []
    turns = wire.turns(Path(workspace.root))
    with serve(faulty(faults, scripted(turns, mark=""))) as server:
        agent = Agent(workspace, wire.model, base_url=f"{server.url}{wire.path}", on_event=events.append)
        outcome = agent.run("mend add")
    assert not server.unknown
    return outcome, events, len(server.asked)


def retries(events: Events) -> Events:
    return [each for each in events if each["type"] == "retry"]


def test_agent_mends_file_over_wire(project: Path, wire: Wire) -> None:
    with serve(scripted(wire.turns(project), mark="")) as server:
        done = command(project, wire, "--base-url", f"{server.url}{wire.path}", "--json")
    assert (done.returncode, done.stderr, server.unknown) == (0, "", [])
    assert (project / "calc.py").read_text() == MENDED
    events = [json.loads(line) for line in done.stdout.splitlines()]
    pieces = [each["text"] for each in events if each["type"] == "text" and each["text"]]
    assert "".join(pieces) == ANSWER
    assert len(pieces) > 1
    assert (events[-1]["status"], events[-1]["tokens"], events[-1]["steps"]) == ("done", 30, 2)


def test_agent_uses_address_of_providers_variable(project: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(scripted(wire.turns(project), mark="")) as server:
        monkeypatch.setenv(wire.address, f"{server.url}{wire.path}")
        done = command(project, wire)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{ANSWER}\n", "")
    assert (project / "calc.py").read_text() == MENDED


def test_anthropic_wire_carries_typed_tools_alone(
    project: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = WIRES["anthropic"]
    monkeypatch.setenv(wire.key, KEY)
    with serve(scripted(wire.turns(project), mark="")) as server:
        Agent(workspace, wire.model, base_url=server.url).run("mend add")
    first, second = (each.body for each in server.asked)
    assert {each["name"]: each.get("type", "")[:4] for each in first["tools"]} == {
        "str_replace_based_edit_tool": "text",
        "bash": "bash",
        "memory": "memo",
    }
    assert second["messages"][-1]["content"][0]["type"] == "tool_result"
    assert first["stream"] is True


@pytest.fixture
def responses(monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.setenv(WIRES["responses"].key, KEY)
    return WIRES["responses"]


def conversation(workspace: Workspace, wire: Wire, *turns: Say | Use) -> list[dict[str, Any]]:
    """Run turns over the wire; return the items of the last request, after the task."""
    with serve(scripted([*turns, Say(ANSWER)], mark="")) as server:
        outcome = Agent(workspace, wire.model, base_url=f"{server.url}{wire.path}").run("mend add")
    assert (outcome.status, server.unknown) == ("done", []), outcome.reason
    assert all(each.body["tools"] == [{"type": "shell"}, {"type": "apply_patch"}] for each in server.asked)
    items: list[dict[str, Any]] = server.asked[-1].body["input"]
    return items[1:]


def test_openai_patch_goes_over_wire_as_items(project: Path, workspace: Workspace, responses: Wire) -> None:
    odd = Use("apply_patch", {"type": "update_file", "path": "no.py", "diff": "+x"})
    call, done, wrong, failed = conversation(workspace, responses, responses.call, odd)
    assert (project / "calc.py").read_text() == MENDED
    assert call == {
        "type": "apply_patch_call",
        "call_id": "call_1",
        "status": "completed",
        "operation": responses.call.arguments,
    }
    output = {"call_id": "call_1", "status": "completed", "output": "Updated calc.py"}
    assert done == {"type": "apply_patch_call_output", **output}
    assert wrong["operation"]["path"] == "no.py"
    assert (failed["type"], failed["status"]) == ("apply_patch_call_output", "failed")
    assert "'no.py' does not exist" in failed["output"]


@pytest.mark.sandbox
def test_openai_shell_goes_over_wire_as_items(project: Path, workspace: Workspace, responses: Wire) -> None:
    action = {"commands": ["cat calc.py | head -n 1", "echo no >&2; exit 3"], "max_output_length": 500}
    unclear = Use("shell", {"commands": []})
    call, done, _, refused = conversation(workspace, responses, Use("shell", action), unclear)
    assert call == {"type": "shell_call", "call_id": "call_1", "status": "completed", "action": action}
    outputs = [
        {"stdout": "def add(a, b):\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "no\n", "outcome": {"type": "exit", "exit_code": 3}},
    ]
    output = {"call_id": "call_1", "output": outputs, "max_output_length": 500}
    assert done == {"type": "shell_call_output", **output}
    (shown,) = refused["output"]
    assert shown["outcome"] == {"type": "exit", "exit_code": 1}
    assert "Parameter 'commands' must not be empty" in shown["stderr"]


def test_openai_function_tools_stay_functions(project: Path, workspace: Workspace, responses: Wire) -> None:
    turns: list[Say | Use] = [Use("shell", {"command": "true"}), Say(ANSWER)]
    with serve(scripted(turns, mark="")) as server:
        url = f"{server.url}{responses.path}"
        Agent(workspace, responses.model, base_url=url, dialect="codex").run("mend add")
    assert {each["type"] for each in server.asked[0].body["tools"]} == {"function"}
    assert [each["type"] for each in server.asked[1].body["input"][1:]] == ["function_call", "function_call_output"]


@pytest.mark.parametrize(
    "fault",
    [Refuse(500), Refuse(503, b"busy"), Refuse(429), Cut(Say("I begin to speak and")), GARBAGE],
    ids=["500", "503", "429", "cut", "garbage"],
)
def test_fault_of_server_is_survived(workspace: Workspace, project: Path, wire: Wire, fault: Fault) -> None:
    outcome, events, asked = run(workspace, wire, fault, fault)
    assert (outcome.status, outcome.answer) == ("done", ANSWER), outcome.reason
    assert (project / "calc.py").read_text() == MENDED
    assert (len(retries(events)), asked) == (2, 4)


# The library takes the end of a stream of Chat Completions for the end of the answer; a call of Gemini is one event.
@pytest.mark.parametrize("wire", ["responses", "anthropic", "gemini"], indirect=True)
def test_text_without_its_end_is_asked_for_again(workspace: Workspace, project: Path, wire: Wire) -> None:
    outcome, _, asked = run(workspace, wire, Cut(Say("I begin to speak and"), clean=True))
    assert (outcome.status, outcome.answer, asked) == ("done", ANSWER, 3), outcome.reason
    assert (project / "calc.py").read_text() == MENDED


@pytest.mark.parametrize("wire", ["responses", "anthropic"], indirect=True)
def test_call_without_its_end_is_asked_for_again(workspace: Workspace, project: Path, wire: Wire) -> None:
    cut = Called("c1", Offered(wire.call.tool), wire.call.arguments)
    outcome, _, asked = run(workspace, wire, Cut(cut, clean=True))
    assert (outcome.status, outcome.answer, asked) == ("done", ANSWER, 3), outcome.reason
    assert (project / "calc.py").read_text() == MENDED


def test_rate_limit_waits_as_long_as_server_says(workspace: Workspace, project: Path, wire: Wire) -> None:
    outcome, events, _ = run(workspace, wire, Refuse(429, headers={"retry-after": "1"}))
    assert outcome.status == "done"
    assert [each["seconds"] for each in retries(events)] == [1]


def test_rate_limit_of_an_hour_ends_run(workspace: Workspace, project: Path, wire: Wire) -> None:
    outcome, events, asked = run(workspace, wire, Refuse(429, headers={"retry-after": "3600"}))
    assert (outcome.status, retries(events), asked) == ("model_error", [], 1)


@pytest.mark.parametrize(
    "fault", [Refuse(500), Cut(Say("I begin to speak and")), GARBAGE], ids=["500", "cut", "garbage"]
)
def test_fault_that_never_ends_ends_run(workspace: Workspace, project: Path, wire: Wire, fault: Fault) -> None:
    outcome, events, asked = run(workspace, wire, *[fault] * 50)
    assert (outcome.status, outcome.exit_code) == ("model_error", 1)
    assert (len(retries(events)), asked) == (model_errors.RETRIES, model_errors.RETRIES + 1)
    assert Trajectory.load(outcome.trajectory).head["extra"]["status"] == "model_error"


def test_server_that_hangs_ends_run(
    workspace: Workspace, project: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_errors, "IDLE_SECONDS", 0.05)
    outcome, events, _ = run(workspace, wire, *[Cut(Say("I begin to speak and"), silent=True)] * 50)
    assert outcome.status == "model_error"
    assert "sent nothing" in outcome.reason
    assert len(retries(events)) == model_errors.RETRIES


def test_server_that_is_not_there_is_named(workspace: Workspace, wire: Wire) -> None:
    with serve(scripted([])) as server:
        address = server.url
    outcome = Agent(workspace, wire.model, base_url=f"{address.replace('//', '//user:word@')}{wire.path}").run("mend")
    assert outcome.status == "model_error"
    assert f"the connection to {address} failed" in outcome.reason


def test_model_that_server_does_not_know_is_told(workspace: Workspace, project: Path, wire: Wire) -> None:
    outcome, events, asked = run(workspace, wire, Refuse(404, b"no such\nmodel" * 1000))
    assert (outcome.status, retries(events), asked) == ("model_error", [], 1)
    assert "answered 404: no such\\nmodel" in outcome.reason
    assert len(outcome.reason) < 1000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_takes_no_key_to_another_host(workspace: Workspace, wire: Wire, status: int) -> None:
    with Site(b"HTTP/1.1 500 no\r\n\r\n") as thief:
        moved = Refuse(status, headers={"Location": thief.url(host="localhost")})
        with serve(lambda _: moved) as server:
            outcome = Agent(workspace, wire.model, base_url=f"{server.url}{wire.path}").run("mend add")
    assert (outcome.status, thief.requests) == ("model_error", [])


def test_wrong_key_is_told_once_and_shown_nowhere(project: Path, wire: Wire, tmp_path: Path) -> None:
    path, log = tmp_path / "t.json", tmp_path / "log"
    with serve(faulty([WRONG] * 50, scripted([]))) as server:
        options = ("--base-url", f"{server.url}{wire.path}", "--trajectory", str(path), "--log", str(log))
        done = command(project, wire, *options)
    assert (done.returncode, done.stdout, len(server.asked)) == (1, "", 1)
    assert "answered 401: wrong key" in done.stderr
    assert "; check the key of the provider" in done.stderr
    assert KEY not in done.stderr + path.read_text() + (log.read_text() if log.exists() else "")


def test_model_with_unknown_tools_ends_confused(project: Path, wire: Wire) -> None:
    with serve(lambda asked: Called(f"c{len(asked.results)}", Offered("no_such_tool"), {})) as server:
        done = command(project, wire, "--base-url", f"{server.url}{wire.path}")
    assert (done.returncode, len(server.asked)) == (24, agent_loop.MISTAKES)
    assert "without a valid call" in done.stderr
