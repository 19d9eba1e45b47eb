"""`--page` of the commands that serve agents."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.command_line import ARGV
from support.page_client import KEY

from handrail.kernel.page.page_place import page_directory

PATIENCE = 60


@pytest.fixture(autouse=True)
def ended_server() -> Iterator[None]:
    """End the server that a command has left running in the background."""
    yield
    lock = os.path.join(page_directory(), "lock")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(each) == lock for each in (process / "fd").iterdir()):
                os.kill(int(process.name), signal.SIGTERM)


def opens(line: str) -> bool:
    """Return whether a line names an address that opens the page."""
    origin, _, token = line.strip().partition("the page: ")[2].partition("/#")
    answer = httpx2.post(f"{origin}/api/enter", json={"token": token}, headers={KEY: "new", "Origin": origin})
    return answer.status_code == 200


def test_run_with_page_prints_one_address_that_opens(root: Path) -> None:
    call = json.dumps({"tool": "file.list", "params": {"path": "."}})
    command = [*ARGV, "run", "--page", "--root", str(root)]
    for _ in range(2):  # the second run finds the server of the first
        done = subprocess.run(command, input=call, capture_output=True, text=True, timeout=PATIENCE, check=True)
        assert json.loads(done.stdout)["success"]
        (line,) = [each for each in done.stderr.splitlines() if "the page" in each]
        assert opens(line)


def test_run_without_page_starts_no_server(root: Path) -> None:
    subprocess.run([*ARGV, "run", "--root", str(root)], input="", capture_output=True, text=True, check=True)
    assert not os.path.exists(page_directory())


def test_run_with_page_hides_address_in_file_that_agent_reads(root: Path) -> None:
    with (root / "errors.txt").open("w") as errors:
        subprocess.run([*ARGV, "run", "--page", "--root", str(root)], input="", stderr=errors, text=True, check=True)
    said = (root / "errors.txt").read_text()
    assert "its address is not shown" in said
    assert "#" not in said


@pytest.mark.parametrize("stateless", [False, True])
def test_mcp_with_page_starts_it_for_a_client_that_works(root: Path, stateless: bool) -> None:
    """A client that only looks what the server offers starts nothing."""
    command = [*ARGV, "mcp", "--page", "--root", str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr

        def ask(method: str, **params: Any) -> Any:
            assert server.stdin
            assert server.stdout
            server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        key = "io.modelcontextprotocol/"
        meta = {f"{key}protocolVersion": "2026-07-28", f"{key}clientCapabilities": {}}
        meta[f"{key}clientInfo"] = {"name": "test", "version": "1"}
        if stateless:
            assert "result" in ask("server/discover", _meta=meta)
            assert not os.path.exists(page_directory())
            assert "result" in ask("tools/list", _meta=meta)
        else:
            ask("ping")
            assert not os.path.exists(page_directory())
            client = {"name": "test", "version": "1"}
            assert "result" in ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        line = next(each for each in server.stderr if "the page" in each)
        assert opens(line)
        server.stdin.close()
        assert server.wait(PATIENCE) == 0
