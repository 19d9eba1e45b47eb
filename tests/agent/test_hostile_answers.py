"""Tests answers that no model should give: too large, cut, refused, with odd characters, with calls of one ID."""

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent.conftest import call
from agent.wire import ANSWER, KEY, WIRES, Wire
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from support.media import image_file
from support.model_server import Asked, Called, Offered, Refuse, Say, serve

from handrail import Workspace
from handrail.agent import Agent, Outcome
from handrail.chat import answer_limit, asker
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory

TOO_LONG = {
    "chat": {"error": {"message": "maximum context length is 9 tokens", "code": "context_length_exceeded"}},
    "responses": {"error": {"message": "exceeds the context window", "code": "context_length_exceeded"}},
    "anthropic": {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}},
    "gemini": {
        "error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "input token count exceeds the maximum"}
    },
}
"""How each API says that a conversation is longer than the model's context."""
HALF = "\ud800"
BOMB = gzip.compress(b"data: " + b"x" * 50_000_000)
DONE = {"text": "Done."}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Wire:
    found = WIRES[request.param]
    monkeypatch.setenv(found.key, KEY)
    return found


def run(workspace: Workspace, wire: Wire, model: Any) -> tuple[Outcome, list[Asked]]:
    with serve(model) as server:
        outcome = Agent(workspace, wire.model, base_url=f"{server.url}{wire.path}").run("mend add")
    return outcome, server.asked


def test_answer_that_is_cut_is_gone_on_with(workspace: Workspace, wire: Wire) -> None:
    left = [Say("I was cut in the", end="length"), Say(ANSWER)]
    outcome, asked = run(workspace, wire, lambda _: left.pop(0))
    assert (outcome.status, outcome.answer, outcome.steps) == ("done", ANSWER, 2)
    assert "Your answer was cut" in json.dumps(asked[1].body)


def test_answer_that_a_filter_stops_ends_run(workspace: Workspace, wire: Wire) -> None:
    outcome, asked = run(workspace, wire, lambda _: Say("I cannot", end="filter"))
    assert (outcome.status, len(asked)) == ("model_error", 1)
    assert "filter" in outcome.reason.lower()


def test_answer_without_end_ends_run(workspace: Workspace, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_limit, "LARGEST", 100_000)
    endless = Refuse(200, b"data: " + b"x" * 200_000, {"Content-Type": "text/event-stream"})
    outcome, asked = run(workspace, wire, lambda _: endless)
    assert (outcome.status, len(asked)) == ("model_error", 1)
    assert "more than" in outcome.reason


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP, gzip", "zstd"])
def test_compressed_answer_ends_run_unread(workspace: Workspace, wire: Wire, encoding: str) -> None:
    bomb = Refuse(200, BOMB, {"Content-Type": "text/event-stream", "Content-Encoding": encoding})
    outcome, asked = run(workspace, wire, lambda _: bomb)
    assert (outcome.status, len(asked)) == ("model_error", 1)
    assert "a compressed answer" in outcome.reason
    assert {each.headers["Accept-Encoding"] for each in asked} == {"identity"}


def test_answer_with_too_much_text_ends_run(workspace: Workspace, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asker, "LONGEST", 1000)
    outcome, asked = run(workspace, wire, lambda _: Say("x" * 5000))
    assert (outcome.status, len(asked)) == ("model_error", 1)
    assert "of text" in outcome.reason


def test_conversation_that_server_finds_too_long_is_shortened(
    workspace: Workspace, wire: Wire, request: pytest.FixtureRequest
) -> None:
    name = next(each for each in WIRES if WIRES[each] is wire)
    refusal = Refuse(400, json.dumps(TOO_LONG[name]).encode(), {"Content-Type": "application/json"})
    left, sizes = [3], list[int]()

    def model(asked: Asked) -> Any:
        sizes.append(len(json.dumps(asked.body)))
        if sizes[-1] > sizes[0] + 8000:
            return refusal
        if asked.tools and left[0]:
            left[0] -= 1
            return Called(f"c{left[0]}", Offered("no_such_tool"), {"note": "y" * 3000})
        return Say(ANSWER)

    outcome, _ = run(workspace, wire, model)
    assert (outcome.status, outcome.answer) == ("done", ANSWER), (outcome.reason, sizes)
    assert max(sizes) > sizes[0] + 8000


def test_calls_with_one_id_get_ids_of_their_own(project: Path, workspace: Workspace) -> None:
    writes = [call("file.write", path=f"{n}.txt", content=str(n)) | {"id": "same"} for n in range(4)]
    turns: list[dict[str, Any]] = [{"calls": writes[:2]}, {"calls": writes[2:]}, DONE]
    outcome = Agent(workspace, ScriptedModel(turns), dialect="file").run("task")
    steps = Trajectory.load(outcome.trajectory).answers
    assert [each["tool_call_id"] for step in steps for each in step.get("tool_calls", [])] == [
        "same", "same_2", "same_3", "same_4",
    ]  # fmt: skip
    assert sorted(each.name for each in project.glob("?.txt")) == ["0.txt", "1.txt", "2.txt", "3.txt"]


@pytest.mark.parametrize("name", [HALF, "a\0b", "../../x", "\x1b]0;x\x07", "x" * 100_000, "multi.tool", ""])
def test_odd_characters_are_never_sent_back(workspace: Workspace, wire: Wire, name: str) -> None:
    odd = Called(f"c{HALF}\x1b[31m", Offered(name), {HALF: f"{HALF}\0", "deep": [HALF]})
    left = [odd, Say(f"I say {HALF}")]
    outcome, asked = run(workspace, wire, lambda _: left.pop(0))
    assert (outcome.status, outcome.answer) == ("done", "I say \ufffd"), outcome.reason
    assert len(asked) == 2
    (given,) = Trajectory.load(outcome.trajectory).answers[0]["tool_calls"]
    assert given["function_name"].isascii()
    assert 0 < len(given["function_name"]) <= 64


def test_arguments_nested_too_deep_are_answered(project: Path, workspace: Workspace) -> None:
    left = [{0: DeltaToolCall("file_read", "[" * 100_000, tool_call_id="c1")}, "Done."]

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        yield left.pop(0)

    outcome = Agent(workspace, FunctionModel(stream_function=stream), dialect="file").run("task")
    assert outcome.status == "done"


@pytest.mark.parametrize("line", ["line of text\n", "一行文字。\n"], ids=["latin", "chinese"])
def test_results_of_one_answer_fit_context_together(project: Path, workspace: Workspace, line: str) -> None:
    for n in range(10):
        (project / f"{n}.txt").write_text(line * 1500)
    reads = {n: DeltaToolCall("file_read", json.dumps({"path": f"{n}.txt"}), tool_call_id=f"c{n}") for n in range(10)}
    left, sizes = [reads, reads, reads, "Done."], list[int]()

    async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        parts = [part for message in messages for part in message.parts]
        sizes.append(sum(len(str(getattr(part, "content", "")).encode()) for part in parts))
        yield left.pop(0)

    model = FunctionModel(stream_function=stream)
    outcome = Agent(workspace, model, dialect="file", context_tokens=12_000).run("read")
    assert outcome.status == "done"
    assert 12_000 < max(sizes) < 12_000 * 4


def test_picture_takes_room_of_its_tokens(project: Path, workspace: Workspace) -> None:
    (project / "a.png").write_bytes(image_file("png", 400, 400, noise=True))
    left = [{0: DeltaToolCall("Read", json.dumps({"file_path": str(project / "a.png")}), tool_call_id="c1")}, "Done."]
    events: list[dict[str, Any]] = []

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[Any]:
        yield left.pop(0)

    model = FunctionModel(stream_function=stream)
    agent = Agent(workspace, model, dialect="claude-code", context_tokens=30_000, on_event=events.append)
    assert agent.run("look").status == "done"
    assert "compact" not in [each["type"] for each in events]
