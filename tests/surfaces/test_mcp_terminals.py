"""Tests that terminals and commands end with their client, however it ends."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support.mcp_client import ERAS, call, envelope, over_http, over_stdio, talk

# The client kills itself as soon as its terminal runs, without any cleanup.
DOOMED = """
import os, signal, sys, anyio
from mcp import Client
from support.mcp_client import over_stdio

async def main():
    where, era, root = sys.argv[1:]
    server = where or over_stdio("--root", root, "--approve", "auto", dialect="codex")
    async with Client(server, mode=era) as client:
        command = {"session_id": "one", "cmd": "exec 3>alive; echo up; sleep 600"}
        result = await client.call_tool("exec_command", command)
        assert "up" in result.structured_content["output"], result
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


def _assert_command_ends(root: Path, act: Callable[[], Any]) -> None:
    """Run `act`, then wait for the end of the command, which holds a pipe open."""
    os.mkfifo(root / "alive")
    ended = threading.Event()

    def listen() -> None:
        with open(root / "alive", "rb") as pipe:
            pipe.read()
        ended.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    act()
    assert ended.wait(300)


def _doomed(root: Path, era: str, url: str = "") -> None:
    knowing_the_tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", DOOMED, url, era, str(root)]
    done = subprocess.run(command, env=knowing_the_tests, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()


@pytest.mark.parametrize("era", ERAS)
def test_stdio_killed_client_ends_its_terminals(root: Path, era: str) -> None:
    _assert_command_ends(root, lambda: _doomed(root, era))


@pytest.mark.parametrize("era", ERAS)
def test_http_killed_client_ends_its_terminals(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[limits]\nidle_seconds = 1\n")
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / "config"))
    with over_http("--root", root, "--approve", "auto", dialect="codex") as (url, _):
        _assert_command_ends(root, lambda: _doomed(root, era, url))


@pytest.mark.parametrize("era", ERAS)
def test_http_stopped_server_ends_all_terminals(root: Path, era: str) -> None:
    def serve() -> None:
        with over_http("--root", root, "--approve", "auto", dialect="codex") as (url, _):
            _doomed(root, era, url)

    _assert_command_ends(root, serve)


@pytest.mark.parametrize("era", ERAS)
def test_mcp_cancelled_command_is_ended(root: Path, era: str) -> None:
    async def act(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "shell", {"command": "exec 3>alive; echo up >&3; sleep 600"})
            await anyio.to_thread.run_sync(started.wait, 300)
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(ended.wait, 300)

    os.mkfifo(root / "alive")
    started, ended = threading.Event(), threading.Event()

    def listen() -> None:
        with open(root / "alive", "rb") as pipe:
            if pipe.readline() == b"up\n":
                started.set()
            pipe.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    talk(over_stdio("--root", root, "--approve", "auto", dialect="codex"), act, era)
    assert ended.is_set()


@pytest.mark.parametrize("era", ERAS)
def test_http_each_client_has_own_last_command(root: Path, era: str) -> None:
    async def main(url: str) -> list[Any]:
        said = []
        for word in ("one", "two"):
            async with Client(url, mode=era) as client:
                meta: Any = {"handrail/session": word} if era == ERAS[1] else None
                before = envelope(await client.call_tool("terminal_last_command", {}, meta=meta))
                await client.call_tool("run_in_terminal", {"command": f"echo {word}"}, meta=meta)
                after = envelope(await client.call_tool("terminal_last_command", {}, meta=meta))
                said.append((before["error"]["code"], after["output"]))
        return said

    with over_http("--root", root, "--approve", "auto", dialect="copilot") as (url, _):
        answers = anyio.run(main, url)
    assert [code for code, _ in answers] == ["no_command_history"] * 2
    assert ["echo one" in answers[0][1], "echo two" in answers[1][1]] == [True, True]


@pytest.mark.parametrize("level", ["strict", "network"])
def test_mcp_sandbox_option_sets_level_of_commands(root: Path, level: str) -> None:
    server = over_stdio("--root", root, "--approve", "auto", "--sandbox", level, dialect="copilot")
    ran = call(server, "run_in_terminal", {"command": "echo hello"})
    assert (ran["success"], ran["metadata"]["sandbox"]) == (True, level)
