"""Tests the resource `handrail://jobs`, with real clients in both eras."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from support.mcp_client import ERAS, Serve, holding, over_http, talk
from support.running_dialect import running

from handrail import Workspace

pytestmark = pytest.mark.parametrize("era", ERAS)

URI = "handrail://jobs"
TOKENS = ("a" * 32, "b" * 32)


async def read(client: Client) -> list[dict[str, Any]]:
    (content,) = (await client.read_resource(URI)).contents
    assert content.mime_type == "application/json"
    found: list[dict[str, Any]] = json.loads(content.text)["jobs"]  # type: ignore[union-attr]
    return found


@pytest.fixture
def server(root: Path, serve: Serve) -> Any:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        yield serve(workspace, dialect=running)


def test_mcp_jobs_resource_lists_jobs_of_session(server: Any, era: str) -> None:
    async def act(client: Client) -> Any:
        before = await read(client)
        await client.call_tool("start", {"command": "exit 3", "wait": 300.0})
        await client.call_tool("start", {"command": "sleep 600 # \x1b[2J\u202e"})
        return before, await read(client), (await client.list_resources()).resources

    before, after, listed = talk(server, act, era)
    assert before == []
    assert [(job["number"], job["command"], job["running"], job["exit_code"]) for job in after] == [
        (1, "exit 3", False, 3),
        (2, "sleep 600 # \x1b[2J\u202e", True, None),
    ]
    assert {job["workspace"] for job in after} == {"workspace"}
    assert [str(each.uri) for each in listed] == [URI, "handrail://history"]


def test_mcp_jobs_of_other_client_are_not_shown(root: Path, tmp_path: Path, era: str) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join(TOKENS))
    tokens.chmod(0o600)
    options = ("--root", root, "--approve", "auto", "--sandbox", "off", "--token-file", tokens)
    with over_http(*options, dialect="claude-code") as (url, _):

        async def act() -> tuple[int, int]:
            async with holding(url, TOKENS[0], era) as first, holding(url, TOKENS[1], era) as second:
                await first.call_tool("Bash", {"command": "sleep 600", "run_in_background": True})
                return len(await read(first)), len(await read(second))

        assert anyio.run(act) == (1, 0)


def test_mcp_unknown_resource_is_refused(server: Any, era: str) -> None:
    async def act(client: Client) -> None:
        with pytest.raises(MCPError, match="unknown resource; the server has handrail://jobs"):
            await client.read_resource("handrail://other")

    talk(server, act, era)


def test_mcp_server_without_commands_has_no_list_of_jobs(workspace: Workspace, era: str, serve: Serve) -> None:
    async def act(client: Client) -> Any:
        with pytest.raises(MCPError, match="unknown resource"):
            await client.read_resource(URI)
        return [str(each.uri) for each in (await client.list_resources()).resources]

    assert talk(serve(workspace, dialect="file"), act, era) == ["handrail://history"]
