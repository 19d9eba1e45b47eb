"""Tests the server over HTTP: tools, sessions, its end, and many clients at once."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support.mcp_client import ERAS, envelope, over_http, talk
from support.raw_http import HEADERS, INITIALIZE, PATIENCE, set_limits, status_of_list, usage_of

SECONDS = float(os.environ.get("HANDRAIL_TEST_SECONDS", "5"))


@pytest.mark.parametrize("era", ERAS)
def test_http_client_lists_and_calls_tools(url: str, era: str) -> None:
    async def act(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, envelope(await client.call_tool("file.read", {"path": "a.txt"}))["output"]["content"]

    names, content = talk(url, act, era)
    assert ("file.read" in names, content) == (True, "     1\tone")


def test_http_idle_client_loses_session(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, tmp_path, idle_seconds=0.5)
    with over_http("--root", root) as (url, _):
        opened = httpx2.post(url, json=INITIALIZE, headers=HEADERS, timeout=PATIENCE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        for pause in (1, 2, 4, 8, 16, 32):  # each request keeps the session alive, so the pauses grow
            time.sleep(pause)
            if status_of_list(url, session) == 404:
                return
    raise AssertionError("the session is still there")


def test_http_server_ends_with_open_streams(root: Path) -> None:
    with over_http("--root", root) as (url, process):

        async def main() -> None:
            async with Client(url, mode="legacy") as client:
                await client.list_tools()
                process.terminate()
                assert await anyio.to_thread.run_sync(process.wait, PATIENCE) == 0

        with contextlib.suppress(httpx2.HTTPError, ExceptionGroup):  # the server is gone when the client says goodbye
            anyio.run(main)
        assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.timeout(600 + 4 * SECONDS)
def test_http_fifty_clients_get_own_answers_and_leave_nothing(tmp_path: Path, era: str) -> None:
    """Let each client write and read in its own workspace for HANDRAIL_TEST_SECONDS."""
    roots = [tmp_path / f"w{number}" for number in range(50)]
    for root in roots:
        root.mkdir()
    calls = 0

    async def client_of(url: str, root: Path, until: float) -> None:
        nonlocal calls
        async with (
            httpx2.AsyncClient(timeout=PATIENCE) as http,
            Client(streamable_http_client(url, http_client=http), mode=era) as client,
        ):
            turn = 0
            while turn == 0 or time.monotonic() < until:
                turn += 1
                content = f"{root.name} {turn}\n"
                named = {"workspace": root.name, "path": "mine.txt"}
                wrote = envelope(await client.call_tool("file.write", {**named, "content": content}))
                assert wrote["success"], wrote
                read = envelope(await client.call_tool("file.read", named))
                assert read["output"]["content"] == f"     1\t{content.strip()}"
                calls += 2

    async def crowd(url: str, seconds: float) -> None:
        until = time.monotonic() + seconds
        async with anyio.create_task_group() as tasks:
            for root in roots:
                tasks.start_soon(client_of, url, root, until)

    wanted = [part for root in roots for part in ("--root", root)]
    with over_http(*wanted, "--approve", "auto") as (url, process):
        anyio.run(crowd, url, 0)
        files, threads, memory = usage_of(process.pid)
        anyio.run(crowd, url, SECONDS)
        deadline = time.monotonic() + PATIENCE
        while (after := usage_of(process.pid))[0] > files + 10 and time.monotonic() < deadline:
            time.sleep(0.2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    assert calls >= 200
    assert after[0] <= files + 10, (files, after)
    assert after[1] <= 2 * len(roots) + 20, (threads, after)  # a workspace with a write has its own thread
    assert after[2] <= memory + 60_000, (memory, after)
    assert children == ""
