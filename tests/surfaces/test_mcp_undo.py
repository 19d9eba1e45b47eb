"""Tests undo from inside an MCP client, in both eras: tools, resources, the prompt and marks."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult
from support.mcp_client import ERAS, Serve, envelope, holding, over_http, over_stdio, talk

from handrail import Workspace
from handrail.dialects import load
from handrail.library.undo_tools import with_undo_tools

pytestmark = pytest.mark.parametrize("era", ERAS)
WRITE = {"path": "a.txt", "content": "new\n"}
HISTORY = "handrail://history"


def with_undo(serve: Serve, *workspaces: Workspace) -> Any:
    return serve(*workspaces, dialect=with_undo_tools(load("file")))


async def text_of(client: Client, uri: str) -> tuple[str, str]:
    (content,) = (await client.read_resource(uri)).contents
    return str(content.mime_type), content.text  # type: ignore[union-attr]


async def entries(client: Client) -> list[dict[str, Any]]:
    kind, text = await text_of(client, HISTORY)
    assert kind == "application/json"
    return list(json.loads(text)["entries"])


def test_mcp_undo_tools_are_listed_with_the_option_only(root: Path, era: str) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    plain = talk(over_stdio("--root", root), names, era)
    assert talk(over_stdio("--root", root, "--with-undo"), names, era) == [*plain, "history", "undo", "restore", "mark"]
    chosen = talk(over_stdio("--root", root, "--with-undo", "--tools", "file.read"), names, era)
    assert chosen == ["file.read", "history", "undo", "restore", "mark"]
    assert "undo" not in talk(over_stdio("--root", root, "--with-undo", "--read-only"), names, era)


def test_mcp_undo_tool_asks_with_the_diff(root: Path, era: str, serve: Serve) -> None:
    asked: list[str] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "once"})

    async def act(client: Client) -> dict[str, Any]:
        await client.call_tool("file.write", WRITE)
        return envelope(await client.call_tool("undo", {}))

    with Workspace(root, approve="ask") as workspace:
        result = talk(with_undo(serve, workspace), act, era, elicitation_callback=answer)
    assert result["success"]
    assert not (root / "a.txt").exists()
    assert "Tool: undo" in asked[1]
    assert "-new" in asked[1]


def test_mcp_undo_tool_answer_keeps_no_rule(root: Path, era: str, serve: Serve) -> None:
    offered: list[list[str]] = []

    async def answer(_context: Any, params: Any) -> ElicitResult:
        offered.append(params.requested_schema["properties"]["decision"]["enum"])
        return ElicitResult(action="accept", content={"decision": "session"})

    async def act(client: Client) -> dict[str, Any]:
        return envelope(await client.call_tool("undo", {"all_sessions": True}))

    with Workspace(root, approve="auto") as workspace:
        assert workspace.tools("file").call("file.write", WRITE).success
    with Workspace(root, approve="ask") as workspace:
        assert not talk(with_undo(serve, workspace), act, era, elicitation_callback=answer)["success"]
    assert offered == [["once", "no"]]
    assert (root / "a.txt").exists()


def test_mcp_undo_tool_declined_changes_nothing(root: Path, era: str, serve: Serve) -> None:
    async def answer(_context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def act(client: Client) -> dict[str, Any]:
        return envelope(await client.call_tool("undo", {"all_sessions": True}))

    with Workspace(root, approve="auto") as workspace:
        assert workspace.tools("file").call("file.write", WRITE).success
    with Workspace(root, approve="ask") as workspace:
        result = talk(with_undo(serve, workspace), act, era, elicitation_callback=answer)
    assert result["error"]["code"] == "approval_denied"
    assert (root / "a.txt").exists()


def test_mcp_history_resource_lists_entries_and_diffs(workspace: Workspace, era: str, serve: Serve) -> None:
    async def act(client: Client) -> Any:
        await client.call_tool("file.write", WRITE)
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        return listed, templates, await entries(client), await text_of(client, f"{HISTORY}/1")

    listed, templates, found, (kind, diff) = talk(serve(workspace), act, era)
    assert (listed, templates) == ([HISTORY], [f"{HISTORY}/{{entry}}"])
    assert [(each["n"], each["workspace"], each["tool"]) for each in found] == [(1, "workspace", "file.write")]
    assert kind == "text/x-diff"
    assert "+new" in diff


@pytest.mark.parametrize("uri", ["handrail://other", f"{HISTORY}/", f"{HISTORY}/x", f"{HISTORY}/9", f"{HISTORY}/a/1"])
def test_mcp_unknown_history_resource_is_an_error(workspace: Workspace, era: str, uri: str, serve: Serve) -> None:
    async def act(client: Client) -> None:
        with pytest.raises(MCPError, match=r"unknown resource; the server has handrail://history|entry 9 not found"):
            await client.read_resource(uri)

    talk(serve(workspace), act, era)


def test_mcp_history_of_several_workspaces_names_each(root: Path, tmp_path: Path, era: str, serve: Serve) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def act(client: Client) -> Any:
        await client.call_tool("file.write", {"workspace": "other", **WRITE})
        return await entries(client), await text_of(client, f"{HISTORY}/other/1")

    with Workspace(root, approve="auto") as one, Workspace(other, approve="auto") as two:
        found, (_, diff) = talk(serve(one, two), act, era)
    assert [each["workspace"] for each in found] == ["other"]
    assert "+new" in diff


def test_mcp_history_over_http_hides_commands_of_other_clients(root: Path, tmp_path: Path, era: str) -> None:
    tokens = [letter * 32 for letter in "ab"]
    (tmp_path / "tokens").write_text("\n".join(tokens))
    (tmp_path / "tokens").chmod(0o600)
    options = ("--root", root, "--approve", "auto", "--sandbox", "off", "--token-file", tmp_path / "tokens")

    async def act(url: str) -> Any:
        async with holding(url, tokens[0], era) as one, holding(url, tokens[1], era) as two:
            await one.call_tool("bash", {"command": "echo x > a.txt # mine"})
            return await entries(one), await entries(two)

    with over_http(*options, dialect="bash") as (url, _):
        own, other = anyio.run(act, url)
    assert own[0]["command"] == "echo x > a.txt # mine"
    assert [file["path"] for file in other[0]["files"]] == ["a.txt"]
    assert "command" not in other[0]


def test_mcp_undo_prompt_names_the_tool_or_the_command(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    async def act(client: Client) -> list[str]:
        await client.call_tool("file.write", WRITE)
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["undo"]
        found = []
        for arguments in ({}, {"to": "turn 3"}, {"entry": "1"}):
            (message,) = (await client.get_prompt("undo", arguments)).messages
            found.append(message.content.text)  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="unknown prompt"):
            await client.get_prompt("redo")
        return found

    plain = talk(serve(workspace), act, era)
    assert f"handrail undo --root {root}" in plain[0]
    assert "1: file.write a.txt" in plain[0]
    assert f"handrail undo --to 'turn 3' --root {root}" in plain[1]
    assert f"handrail undo 1 --root {root}" in plain[2]
    offered = talk(with_undo(serve, workspace), act, era)
    assert all("call the tool `undo`" in text for text in offered)
    assert "the mark turn 3" in offered[1]


def test_mcp_mark_of_a_request_is_set_once_before_the_call(
    workspace: Workspace, root: Path, era: str, serve: Serve
) -> None:
    async def act(client: Client) -> Any:
        for number, turn in ((1, "turn 1"), (2, "turn 2"), (3, "turn 2")):
            params = {"path": f"{number}.txt", "content": "x"}
            await client.call_tool("file.write", params, meta={"handrail/mark": turn})  # type: ignore[arg-type]  # a key of our own
        return await client.call_tool("undo", {"to": "turn 2"})

    assert not talk(with_undo(serve, workspace), act, era).is_error
    assert [mark.name for mark in workspace.history().marks()] == ["turn 2", "turn 1"]
    assert [path.name for path in root.iterdir()] == ["1.txt"]


@pytest.mark.parametrize("name", ["a\nb", 7, ["x"]])
def test_mcp_mark_that_is_no_name_is_an_error(workspace: Workspace, era: str, name: Any, serve: Serve) -> None:
    async def act(client: Client) -> None:
        with pytest.raises(MCPError, match="handrail/mark must be a name"):
            await client.call_tool("file.write", WRITE, meta={"handrail/mark": name})  # type: ignore[arg-type]  # a key of our own

    talk(serve(workspace), act, era)
