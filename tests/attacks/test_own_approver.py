"""Lets a sandboxed command with network connect to its own server over HTTP, to answer the questions of the agent."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.mcp_client import command, envelope, holding, over_http
from support.sandboxes import PYTHON

ATTACK = Path(__file__).with_name("own_approver.py")
OPTIONS = ("--approve", "auto", "--sandbox", "network")
"""With these options commands run without a question, but the server still asks before it writes a git hook."""
ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture
def planted(root: Path) -> Path:
    """Make a repository that contains the attack."""
    subprocess.run(["git", "init", "-q", root], check=True)
    shutil.copy(ATTACK, root / "attack.py")
    return root


@contextmanager
def with_generated_token(*arguments: Any) -> Iterator[tuple[str, str]]:
    """Start a server that generates its token; yield its address and the token."""
    process = subprocess.Popen(
        command("--http", "127.0.0.1:0", *arguments, dialect="copilot"), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    try:
        serving, header = process.stderr.readline(), process.stderr.readline()
        yield serving.split()[-1], header.partition("Authorization: Bearer ")[2].strip()
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


def run(url: str, token: str, line: str) -> dict[str, Any]:
    """Run a command through the client of the agent and return the answer."""

    async def main() -> dict[str, Any]:
        async with holding(url, token, "legacy") as client:
            return envelope(await client.call_tool("run_in_terminal", {"command": line}))

    return anyio.run(main)


@pytest.mark.parametrize("era", ERAS)
def test_own_approver_without_token_gets_status_401(planted: Path, era: str) -> None:
    with with_generated_token("--root", planted, *OPTIONS) as (url, token):
        assert len(token) >= 32
        ran = run(url, token, f"{PYTHON} attack.py {url} {era}")
    assert (ran["metadata"]["sandbox"], "401" in str(ran["output"])) == ("network", True), ran
    assert not (planted / ".git/hooks/pre-commit").exists()


@pytest.mark.parametrize("era", ERAS)
def test_own_approver_on_server_without_token_is_not_asked(planted: Path, era: str) -> None:
    with over_http("--root", planted, *OPTIONS, "--no-token", dialect="copilot") as (url, _):
        ran = run(url, "none", f"{PYTHON} attack.py {url} {era}")
    assert "this server has no token and therefore cannot ask for approval" in str(ran["output"]), ran
    assert not (planted / ".git/hooks/pre-commit").exists()


def test_own_approver_with_leaked_token_can_approve(planted: Path, tmp_path: Path) -> None:
    """Show that the attack is real: a process that has the token is asked, and Handrail accepts its answer."""
    (tmp_path / "tokens").write_text("a token that leaked\n")
    with over_http("--root", planted, *OPTIONS, "--token-file", tmp_path / "tokens", dialect="copilot") as (url, _):
        told = ATTACK.read_text().replace("ACCEPT = {", 'ACCEPT = {"authorization": "Bearer a token that leaked", ')
        (planted / "attack.py").write_text(told)
        run(url, "a token that leaked", f"{PYTHON} attack.py {url} {ERAS[1]}")
    assert (planted / ".git/hooks/pre-commit").read_text() == "#!/bin/sh\necho planted\n"


def test_generated_token_is_not_visible_to_commands(planted: Path) -> None:
    own = f"{os.environ['HANDRAIL_STATE_DIR']} {os.environ['HANDRAIL_CONFIG_DIR']}"
    places = f"/proc/[0-9]*/environ /proc/[0-9]*/cmdline . {own}"
    with with_generated_token("--root", planted, *OPTIONS) as (url, token):
        (planted / "known").write_text(token)
        found = run(url, token, f"grep -rlasF -f known {places} 2>/dev/null; echo looked")
    assert str(found["output"]).count("known") == 1, found  # the test's own file shows that the search works
    assert "looked" in str(found["output"])


@pytest.mark.parametrize("where", ["token file", "standard error", "readable"])
def test_token_in_file_that_agent_can_read_is_refused(root: Path, tmp_path: Path, where: str) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (root / "tokens").write_text("a token of some length\n")
    (shown / "tokens").write_text("a token of some length\n")
    config = tmp_path / "config"
    config.mkdir()
    (config / "config.toml").write_text(f"readable = [{json.dumps(str(shown))}]\n")
    given = {"token file": root / "tokens", "readable": shown / "tokens"}.get(where)
    named: tuple[str | Path, ...] = ("--token-file", given) if given else ()
    arguments = command("--root", root, "--http", "127.0.0.1:0", *named)
    with open(root / "server.log", "wb") as log:
        refused = subprocess.run(
            ["env", f"HANDRAIL_CONFIG_DIR={config}", *arguments], stderr=log, check=False, timeout=60
        )
    said = (root / "server.log").read_text()
    assert (refused.returncode, "is a file that the agent can read" in said, "Bearer" in said) == (2, True, False), said


def test_host_approval_without_token_is_refused(root: Path) -> None:
    refused = subprocess.run(
        command("--root", root, "--http", "127.0.0.1:0", "--no-token", "--approve", "host"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (refused.returncode, "every client could approve its own calls" in refused.stderr) == (2, True)


def test_question_goes_to_connection_that_made_the_call(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("one and the same token\n")
    heard: list[str] = []

    def answering(who: str, decision: str) -> Any:
        from mcp.types import ElicitResult

        async def answer(context: Any, params: Any) -> ElicitResult:
            heard.append(who)
            return ElicitResult(action="accept", content={"decision": decision})

        return answer

    async def main(url: str) -> Any:
        token, write = "one and the same token", {"path": "a", "content": "x"}
        async with (
            holding(url, token, "legacy", elicitation_callback=answering("the user", "no")) as caller,
            holding(url, token, "legacy", elicitation_callback=answering("another", "once")) as another,
        ):
            await another.list_tools()
            return envelope(await caller.call_tool("file.write", write))

    with over_http("--root", root, "--token-file", tmp_path / "tokens") as (url, _):
        answer = anyio.run(main, url)
    assert (heard, answer["success"], (root / "a").exists()) == (["the user"], False, False)
