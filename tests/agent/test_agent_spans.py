"""Tests the spans of the agent and of a framework that runs the tools: one for each run, answer and call."""

from pathlib import Path
from typing import Any

import anyio
from agent.conftest import call
from pydantic_ai import Agent as OtherAgent
from pydantic_ai.models.test import TestModel
from support.spans import Spans, spans

from handrail import Workspace
from handrail.agent import Agent
from handrail.chat.scripted import ScriptedModel
from handrail.surfaces.adapters.pydantic_ai import toolset

__all__ = ["spans"]

SECRET = "word-of-the-user"
TURNS: list[dict[str, Any]] = [
    {"text": "I look.", "calls": [call("file.read", path="calc.py"), call("file.read", path="gone")]},
    {"text": "I write.", "calls": [call("file.write", path="a.txt", content=SECRET)]},
    {"text": "Done."},
]


def test_run_has_one_span_for_each_answer_and_call(project: Path, spans: Spans) -> None:
    with Workspace(str(project), approve="auto", telemetry="otel") as workspace:
        Agent(workspace, ScriptedModel(TURNS), dialect="file").run(SECRET)
    run, *parts = sorted(spans(), key=lambda span: int(span.start_time))
    assert [span.name for span in (run, *parts)] == [
        "invoke_agent handrail",
        "chat scripted",
        "execute_tool file.read",
        "execute_tool file.read",
        "chat scripted",
        "execute_tool file.write",
        "handrail.approval",
        "handrail.commit",
        "chat scripted",
    ]
    below = [span for span in parts if not span.name.startswith("handrail.")]
    assert {span.parent.span_id for span in below} == {run.context.span_id}
    assert [span.attributes["gen_ai.operation.name"] for span in (run, *below)] == [
        "invoke_agent", "chat", "execute_tool", "execute_tool", "chat", "execute_tool", "chat",
    ]  # fmt: skip
    assert dict(run.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "handrail",
        "gen_ai.request.model": "scripted",
        "gen_ai.conversation.id": below[1].attributes["gen_ai.conversation.id"],
    }
    calls = [span for span in below if span.name.startswith("execute_tool")]
    assert [span.attributes["gen_ai.tool.call.id"] for span in calls] == ["call_1_1", "call_1_2", "call_2_1"]
    assert [span.attributes.get("error.type") for span in calls] == [None, "file_not_found", None]
    assert SECRET not in str([dict(span.attributes) for span in spans()])


def test_run_with_contents_has_them_in_spans(project: Path, spans: Spans) -> None:
    with Workspace(str(project), approve="auto", telemetry="otel", telemetry_contents=True) as workspace:
        Agent(workspace, ScriptedModel(TURNS), dialect="file").run(SECRET)
    found = {span.name: str(dict(span.attributes)) for span in spans()}
    assert SECRET in found["execute_tool file.write"]
    assert SECRET in found["chat scripted"]


def test_run_without_telemetry_makes_no_span(project: Path, spans: Spans) -> None:
    with Workspace(str(project), approve="auto") as workspace:
        Agent(workspace, ScriptedModel(TURNS), dialect="file").run("task")
    assert spans() == []


def test_call_of_instrumented_framework_has_one_span(project: Path, spans: Spans) -> None:
    with Workspace(str(project), approve="auto", telemetry="otel") as workspace:
        tools = toolset(workspace.tools("file"))
        other = OtherAgent(TestModel(call_tools=["file_list"]), toolsets=[tools])
        other.instrument = True
        anyio.run(other.run, "list")
    (made,) = [span for span in spans() if span.attributes.get("gen_ai.operation.name") == "execute_tool"]
    assert (made.attributes["handrail.dialect"], made.attributes["gen_ai.tool.name"]) == ("file", "file.list")
