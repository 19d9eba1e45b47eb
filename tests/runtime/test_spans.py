"""Tests telemetry: the spans of calls on each surface, compared whole."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from opentelemetry import trace
from support.command_line import in_process
from support.mcp_client import Serve, serve
from support.spans import Spans, spans

from handrail import Workspace

__all__ = ["serve", "spans"]


def facts(span: Any) -> dict[str, Any]:
    known = dict(span.attributes)
    known.pop("gen_ai.conversation.id", None)
    known.pop("gen_ai.tool.description", None)
    return known


def test_call_without_telemetry_makes_no_span(root: Path, spans: Spans) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        workspace.call("file", "file.write", {"path": "a", "content": "x"})
    assert spans() == []


def test_write_makes_span_with_approval_and_commit(root: Path, spans: Spans) -> None:
    with Workspace(str(root), approve="auto", telemetry="otel") as workspace:
        workspace.tools("file").call("file.write", {"path": "a", "content": "x"}, call_id="7")
    approval, commit, call = spans()
    assert [span.name for span in (approval, commit, call)] == [
        "handrail.approval", "handrail.commit", "execute_tool file.write",
    ]  # fmt: skip
    assert {span.parent.span_id for span in (approval, commit)} == {call.context.span_id}
    assert facts(approval).pop("handrail.approval.waited_ms") >= 0
    assert facts(approval)["handrail.approval.by"] == "policy auto"
    assert facts(commit) == {"handrail.commit.files": 1, "handrail.commit.bytes": 1, "handrail.journal.entry": 1}
    assert facts(call) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "file.write",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "7",
        "handrail.dialect": "file",
        "handrail.risk": "dangerous",
        "handrail.files_affected": 1,
    }


def test_failed_call_has_error_type(root: Path, spans: Spans) -> None:
    with Workspace(str(root), telemetry="otel") as workspace:
        workspace.call("file", "file.read", {"path": "secret-name"})
    (call,) = spans()
    assert (call.attributes["error.type"], call.status.is_ok) == ("file_not_found", False)
    assert "secret-name" not in json.dumps(dict(call.attributes))


def test_contents_are_in_spans_only_if_asked_for(root: Path, spans: Spans) -> None:
    (root / "a").write_text("hello\n")
    with Workspace(str(root), telemetry="otel", telemetry_contents=True) as workspace:
        workspace.call("file", "file.read", {"path": "a"})
    (call,) = spans()
    assert call.attributes["gen_ai.tool.call.arguments"] == '{"path": "a"}'
    assert "hello" in call.attributes["gen_ai.tool.call.result"]


def test_span_of_framework_gets_facts_of_call(root: Path, spans: Spans) -> None:
    (root / "a").write_text("hello\n")
    with Workspace(str(root), telemetry="otel") as workspace:
        for name in ("file_read", "my_tool"):
            about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
            with trace.get_tracer("framework").start_as_current_span("running tool", attributes=about):
                workspace.call("file", "file.read", {"path": "gone"})
    known, own, other = spans()
    assert (known.name, known.attributes["error.type"]) == ("running tool", "file_not_found")
    assert (own.name, other.name) == ("execute_tool file.read", "running tool")  # a tool of the program, which calls


def test_command_line_call_makes_one_span(root: Path, spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("hello\n")
    monkeypatch.setenv("HANDRAIL_TELEMETRY", "otel")
    assert in_process("call", "file.read", "path=a", "--root", str(root)).returncode == 0
    (call,) = spans()
    assert (call.name, call.kind) == ("execute_tool file.read", trace.SpanKind.INTERNAL)
    assert facts(call) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "file.read",
        "gen_ai.tool.type": "function",
        "handrail.dialect": "file",
        "handrail.risk": "read_only",
        "handrail.files_affected": 0,
    }


@pytest.mark.sandbox
def test_program_run_in_sandbox_has_facts_of_its_end(root: Path, spans: Spans) -> None:
    with Workspace(str(root), approve="auto", telemetry="otel") as workspace:
        workspace.exec(["/bin/sh", "-c", "echo out; exit 3"])
    ran = facts(next(span for span in spans() if span.name == "handrail.sandbox.exec"))
    assert (ran["handrail.sandbox.exit_code"], ran["handrail.sandbox.bytes"]) == (3, 4)


@pytest.mark.sandbox
def test_command_makes_span_with_level_and_exit_code(root: Path, spans: Spans) -> None:
    with Workspace(str(root), approve="auto", telemetry="otel") as workspace:
        workspace.call("bash", "bash", {"command": "echo out; exit 3"})
    found = {span.name: span for span in spans()}
    ran = facts(found["handrail.sandbox.exec"])
    assert (ran["handrail.sandbox.exit_code"], ran["handrail.sandbox.timed_out"]) == (3, False)
    assert ran["handrail.sandbox.bytes"] == 4
    assert ran["handrail.sandbox.level"] in ("strict", "reduced")


def test_mcp_call_makes_one_span_with_facts_of_both(root: Path, spans: Spans, serve: Serve) -> None:
    (root / "a").write_text("hello\n")

    async def talk() -> None:
        with Workspace(str(root), telemetry="otel") as workspace:
            async with Client(serve(workspace)) as client:
                await client.call_tool("file.read", {"path": "a"})
                await client.call_tool("file.read", {"path": "gone"})
                with pytest.raises(MCPError):
                    await client.get_prompt("unknown")

    anyio.run(talk)
    calls = [span for span in spans() if span.attributes.get("gen_ai.operation.name") == "execute_tool"]
    call, failed = (span for span in calls if span.kind is trace.SpanKind.SERVER)
    assert [span for span in calls if span.kind is trace.SpanKind.INTERNAL] == []
    assert call.name == "tools/call file.read"
    assert (call.attributes["mcp.method.name"], call.attributes["handrail.dialect"]) == ("tools/call", "file")
    assert (failed.attributes["error.type"], failed.attributes["handrail.error.code"]) == (
        "tool_error",
        "file_not_found",
    )
    (refused,) = [span for span in spans() if span.name == "prompts/get unknown"]
    assert (refused.attributes["error.type"], refused.status.is_ok) == ("-32602", False)
