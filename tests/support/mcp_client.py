"""Connects the real MCP client of the SDK in memory, over stdio and over HTTP, in both eras."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from handrail import Workspace
from handrail.dialects import load
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.server import build
from handrail.tools.tool import Dialect
from support.pipe_front import pipe_transport

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

ERAS = ("legacy", "2026-07-28")


def in_memory(*workspaces: Workspace, dialect: str | Dialect = "file", **options: Any) -> "Server[Any]":
    """Return a server of the SDK."""
    return build(offer(*workspaces, dialect=dialect, **options))


def in_pipe(*workspaces: Workspace, dialect: str | Dialect = "file", **options: Any) -> Any:
    """Return a transport to the front that serves pipes, for one client."""
    return pipe_transport(offer(*workspaces, dialect=dialect, **options))


def offer(*workspaces: Workspace, dialect: str | Dialect = "file", **options: Any) -> Offer:
    return Offer.of([*workspaces], dialect if isinstance(dialect, Dialect) else load(dialect), **options)


Serve = Callable[..., Any]
"""Serves workspaces with one of the two fronts: `in_memory` or `in_pipe`."""


@pytest.fixture(params=[in_memory, in_pipe], ids=["sdk", "pipe"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Return each of the two fronts: what a test says holds for both."""
    chosen: Serve = request.param
    return chosen


def command(*arguments: str | Path, dialect: str = "file") -> list[str]:
    return [sys.executable, "-P", "-m", "handrail", "mcp", "--dialect", dialect, *map(str, arguments)]


def over_stdio(*arguments: str | Path, dialect: str = "file") -> StdioServerParameters:
    program, *rest = command(*arguments, dialect=dialect)
    return StdioServerParameters(command=program, args=rest, env=dict(os.environ))


@contextmanager
def over_http(
    *arguments: str | Path, dialect: str = "file", home: Path | None = None
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Start a server; yield its address and its process. `home` holds its state, if not the directory of the test.

    The server needs a token only if the test passes one. A server without a token asks no client.
    """
    locked = () if {"--token-file", "--no-token"} & {*map(str, arguments)} else ("--no-token",)
    homes = {"HANDRAIL_STATE_DIR": f"{home}/state", "HANDRAIL_CONFIG_DIR": f"{home}/config"} if home else {}
    process = subprocess.Popen(
        command("--http", "127.0.0.1:0", *locked, *arguments, dialect=dialect),
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | homes,
    )
    assert process.stderr
    try:
        line = process.stderr.readline()
        assert "serving" in line, line + process.stderr.read()
        yield line.split()[-1], process
    finally:
        process.terminate()
        process.wait(300)
        process.stderr.close()


@asynccontextmanager
async def holding(url: str, token: str, era: str, **options: Any) -> AsyncIterator[Client]:
    """Connect a client over HTTP with a token."""
    async with (
        httpx2.AsyncClient(timeout=300, headers={"authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, **options) as client,
    ):
        yield client


def talk(server: Any, act: Callable[[Client], Awaitable[Any]], era: str = ERAS[0], **options: Any) -> Any:
    async def main() -> Any:
        async with Client(server, mode=era, **options) as client:
            return await act(client)

    return anyio.run(main)


def call(server: Any, tool: str, arguments: dict[str, Any], era: str = ERAS[0], **options: Any) -> dict[str, Any]:
    """Return the envelope of one call."""

    async def act(client: Client) -> Any:
        return envelope(await client.call_tool(tool, arguments))

    answer: dict[str, Any] = talk(server, act, era, **options)
    return answer


def envelope(result: Any) -> dict[str, Any]:
    """Build the envelope of the library from an MCP result."""
    content = result.content[0]
    if content.type == "text":
        output = content.text if result.structured_content is None else _output(result)
        if result.is_error and content.text.startswith("{"):
            output = json.loads(content.text)
    else:
        data = content.resource.blob if content.type == "resource" else content.data
        kind = content.resource.mime_type if content.type == "resource" else content.mime_type
        output = {"inlineData": {"mimeType": kind, "data": data}}
        assert result.structured_content is None  # a client that prefers it would not show the image
        if fields := result.meta["handrail/result"].get("output"):  # of an answer that holds the image as an address
            output = {"image_url": f"data:{kind};base64,{data}", **fields}
    found: dict[str, Any] = {**result.meta["handrail/result"], "output": output}
    assert found["success"] is not result.is_error
    _assert_hints_are_content(result, found)
    return found


def _output(result: Any) -> dict[str, Any]:
    """Return the output of a structured result; check that it has the hints too, since some clients show only it."""
    exact, *rest = (block.text for block in result.content)
    output: dict[str, Any] = json.loads(exact)
    assert result.structured_content == ({**output, "hints": rest[0]} if rest else output)
    return output


def _assert_hints_are_content(result: Any, found: dict[str, Any]) -> None:
    """Check that the model sees the suggestion and the warnings, never only in `_meta`."""
    seen = "\n".join(block.text for block in result.content if block.type == "text")
    suggestion = found.get("error", {}).get("suggestion", "")
    for sentence in (suggestion, *found.get("warnings", ())):
        assert sentence in seen or json.dumps(sentence, ensure_ascii=False)[1:-1] in seen, sentence
    assert len(result.content) <= 2
