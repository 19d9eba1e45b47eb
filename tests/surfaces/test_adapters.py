"""Tests the adapters with the real packages (`make test-adapters`). Skips packages that are not installed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Workspace

pytestmark = pytest.mark.filterwarnings("default")  # these packages cause each other's warnings


@pytest.fixture
def router(workspace: Workspace, root: Path) -> Any:
    (root / "a.txt").write_text("one\ntwo\n")
    return workspace.tools("file")


READ = {"content": "     1\tone", "total_lines": 2, "truncated": True}


def _error(text: str) -> str:
    """Return the code in an error that a model reads: the output, a blank line, and the suggestion."""
    output, blank, suggestion = text.partition("\n\n")
    assert blank
    assert suggestion
    found: str = json.loads(output)["error"]
    return found


def test_openai_agents_adapter_runs_tools(router: Any) -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    from agents.tool_context import ToolContext

    from handrail.surfaces.adapters.openai_agents import tools

    made = {tool.name: tool for tool in tools(router)}
    assert [*made] == [name.replace(".", "_") for name in router.tools]
    agent = agents.Agent(name="a", tools=[*made.values()])
    assert [tool.name for tool in agent.tools] == [*made]
    tool = made["file_read"]
    assert tool.strict_json_schema
    assert tool.params_json_schema["required"] == ["path", "offset", "limit"]

    def invoke(arguments: str) -> Any:
        context = ToolContext(None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments)
        return anyio.run(tool.on_invoke_tool, context, arguments)

    assert json.loads(invoke('{"path": "a.txt", "offset": null, "limit": 1}')) == READ
    assert _error(invoke('{"path": "gone", "offset": null, "limit": null}')) == "file_not_found"
    assert _error(invoke("nonsense")) == "invalid_parameters"


def test_langchain_adapter_runs_tools(router: Any) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from handrail.surfaces.adapters.langchain import tools

    made = {tool.name: tool for tool in tools(router)}
    tool = made["file_read"]
    assert convert_to_openai_tool(tool)["function"]["parameters"]["required"] == ["path"]
    call = {"name": tool.name, "type": "tool_call", "id": "1"}
    good = tool.invoke({**call, "args": {"path": "a.txt", "limit": 1}})
    assert (good.status, json.loads(good.content), good.tool_call_id) == ("success", READ, "1")
    bad = anyio.run(tool.ainvoke, {**call, "args": {"path": "gone"}})
    assert (bad.status, _error(bad.content)) == ("error", "file_not_found")


def test_pydantic_ai_adapter_runs_tools(router: Any) -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from handrail.surfaces.adapters.pydantic_ai import toolset

    seen: list[AgentInfo] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        paths = {1: "a.txt", 3: "gone"}
        if len(messages) in paths:
            return ModelResponse([ToolCallPart("file_read", {"path": paths[len(messages)], "limit": 1})])
        return ModelResponse([TextPart("done")])

    result = anyio.run(Agent(FunctionModel(model), toolsets=[toolset(router)]).run, "go")
    assert [tool.name for tool in seen[0].function_tools] == [name.replace(".", "_") for name in router.tools]
    returned = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert returned[0].content == READ
    assert "file_not_found" in str(returned[1].content)


def test_inspect_ai_adapter_runs_tools(router: Any) -> None:
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai.model import ChatMessageAssistant, execute_tools
    from inspect_ai.tool import ToolCall, ToolDef

    from handrail.surfaces.adapters.inspect_ai import tools

    made = tools(router)
    assert [ToolDef(tool).name for tool in made] == [name.replace(".", "_") for name in router.tools]
    calls = [
        ToolCall(id="1", function="file_read", arguments={"path": "a.txt", "limit": 1}),
        ToolCall(id="2", function="file_read", arguments={"path": "gone"}),
    ]

    async def run() -> Any:
        return await execute_tools([ChatMessageAssistant(content="", tool_calls=calls)], made)

    good, bad = anyio.run(run).messages
    assert json.loads(good.text) == READ
    assert _error(bad.error.message) == "file_not_found"


def test_inspect_ai_adapter_takes_calls_without_defaults(workspace: Workspace, root: Path) -> None:
    """Inspect checks arguments before the call, so that a listed default must not be required."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
    from inspect_ai.model import ChatMessageAssistant, execute_tools
    from inspect_ai.tool import ToolCall

    from handrail.surfaces.adapters.inspect_ai import tools

    (root / "a.txt").write_text("one\n")
    calls = [ToolCall(id="1", function="read_file", arguments={"path": "a.txt"})]

    async def run() -> Any:
        return await execute_tools(
            [ChatMessageAssistant(content="", tool_calls=calls)], tools(workspace.tools("codex"))
        )

    (answer,) = anyio.run(run).messages
    assert answer.error is None
    assert json.loads(answer.text) == {"text": "one\n", "truncated": False}


def test_smolagents_adapter_runs_tools(router: Any) -> None:
    pytest.importorskip("smolagents", reason="smolagents is not installed")
    from handrail.surfaces.adapters.smolagents import tools

    made = {tool.name: tool for tool in tools(router)}
    tool = made["file_read"]
    assert "file_read" in tool.to_tool_calling_prompt()
    assert json.loads(tool(path="a.txt", limit=1)) == READ
    assert json.loads(tool({"path": "a.txt", "limit": 1})) == READ
    assert _error(tool(path="gone")) == "file_not_found"


@pytest.mark.parametrize("name", ["openai_agents", "langchain", "pydantic_ai", "inspect_ai", "smolagents"])
def test_adapter_has_at_most_eighty_lines(name: str) -> None:
    from handrail.surfaces import adapters

    assert len((Path(adapters.__file__).parent / f"{name}.py").read_text().split("\n")) <= 80


def test_handrail_imports_no_agent_framework() -> None:
    loaded = "import sys, handrail, handrail.surfaces.adapters; handrail.Workspace; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert not {"agents", "inspect_ai", "langchain_core", "pydantic_ai", "smolagents"} & {*done.stdout.split()}
