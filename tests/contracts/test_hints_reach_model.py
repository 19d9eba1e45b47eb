"""Plays the cases that have a suggestion or warnings through function calling; checks that the model sees them.

`support/mcp_client.py` checks the same for every case over MCP.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support import contract_cases
from support.mcp_client import in_memory, talk

from handrail import Workspace
from handrail.tools.router import ToolRouter

CASES = [
    case
    for case in contract_cases.without_ordinary_user(contract_cases.read_all())
    if any(block.kind in ("suggestion", "warnings") for step in case.steps for block in step.expected)
]


def _chat(router: ToolRouter, name: str, params: Any) -> Any:
    function = {"name": name, "arguments": json.dumps(params)}
    return router.call_openai({"id": "1", "type": "function", "function": function})["content"]


def _responses(router: ToolRouter, name: str, params: Any) -> Any:
    item = {"type": "function_call", "call_id": "1", "name": name, "arguments": json.dumps(params)}
    return router.call_openai(item)["output"]


def _anthropic(router: ToolRouter, name: str, params: Any) -> Any:
    return router.call_anthropic({"type": "tool_use", "id": "1", "name": name, "input": params})["content"]


def _gemini(router: ToolRouter, name: str, params: Any) -> Any:
    return router.call_gemini({"name": name, "args": params})["functionResponse"]["response"]


APIS: list[Callable[[ToolRouter, str, Any], Any]] = [_chat, _responses, _anthropic, _gemini]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _sentences(step: contract_cases.Step, root: Path) -> Iterator[str]:
    """Yield the suggestion and the warnings that a step promises word for word."""
    for block in step.expected:
        body = block.body.replace("$ROOT", str(root))
        found = [body[:-1]] if block.kind == "suggestion" else json.loads(body) if block.kind == "warnings" else []
        yield from (each for each in found if "<any>" not in each and "<number>" not in each)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.__name__[1:])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_hints_are_in_function_answers(
    case: contract_cases.Case, api: Callable[[ToolRouter, str, Any], Any], root: Path
) -> None:
    contract_cases.build(case, root)
    with Workspace(str(root), **case.settings) as workspace:
        router = workspace.tools(case.dialect)
        for step in case.steps:
            answer = api(router, step.tool, contract_cases.params_of(step, root))
            seen = "\n".join(_texts(answer))
            for sentence in _sentences(step, root):
                assert sentence in seen or json.dumps(sentence, ensure_ascii=False)[1:-1] in seen, (sentence, answer)


@pytest.mark.parametrize("hints", [True, False])
@pytest.mark.parametrize("api", [_chat, _responses, _anthropic], ids=lambda api: api.__name__[1:])
def test_function_answer_has_hints_after_blank_line(
    api: Callable[[ToolRouter, str, Any], Any], hints: bool, root: Path
) -> None:
    with Workspace(str(root), hints=hints) as workspace:
        answer = api(workspace.tools("copilot"), "read_file", {"path": "gone"})
    tail = "\n\nCheck the file name and try again, or use file_search to find it" if hints else ""
    assert answer == f"Error: File 'gone' not found{tail}"


@pytest.mark.parametrize("hints", [True, False])
def test_gemini_answer_has_hints_if_the_setting_says_so(hints: bool, root: Path) -> None:
    with Workspace(str(root), hints=hints) as workspace:
        missing = _gemini(workspace.tools("gemini"), "read_file", {"absolute_path": f"{root}/gone"})
        ignored = _gemini(workspace.tools("gemini-3"), "list_directory", {"dir_path": ".", "colour": "red"})
    assert ("Use list_directory" in str(missing)) is hints
    assert ("unknown parameter 'colour' was ignored" in str(ignored)) is hints


@pytest.mark.parametrize("hints", [True, False])
def test_mcp_answer_has_hints_as_second_text_block(hints: bool, root: Path) -> None:
    async def ask(client: Client) -> list[str]:
        result = await client.call_tool("read_file", {"path": "gone"})
        return [block.text for block in result.content if block.type == "text"]

    with Workspace(str(root), hints=hints) as workspace:
        blocks = talk(in_memory(workspace, dialect="copilot"), ask)
    hint = "Check the file name and try again, or use file_search to find it"
    assert blocks == ["Error: File 'gone' not found", *([hint] if hints else [])]
