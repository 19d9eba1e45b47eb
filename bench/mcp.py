"""The MCP server against the SDK's own (an empty tool, a bare start), and beside npm's filesystem server."""

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.measure import Row, compare, show

BARE = """
import anyio, mcp.types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="empty", input_schema={"type": "object"})])

async def call(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="")])

server = Server("bare", on_list_tools=tools, on_call_tool=call)

async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
PEER = Path(".conformance/node_modules/.bin/mcp-server-filesystem").resolve()


class Pipe:
    """The least that a client must do, so that the server is what is measured."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._number = 0
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number and "method" not in answer:
                return answer["result"]
            if "id" in answer:  # the peer asks for our roots
                self._send({"jsonrpc": "2.0", "id": answer["id"], "result": {"roots": []}})

    def call(self, tool: str, **arguments: Any) -> None:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def _open(command: list[str]) -> Iterator[Pipe]:
    pipe = Pipe(command)
    try:
        yield pipe
    finally:
        pipe.close()


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home, ExitStack() as opened:
        os.environ |= {"HANDRAIL_STATE_DIR": f"{home}/state", "HANDRAIL_CONFIG_DIR": f"{home}/config"}
        root = Path(home, "root")
        _fill(root)
        flags = ["--approve", "auto", "--root", str(root)]
        ours = [sys.executable, "-m", "handrail", "mcp", "--dialect", "file", *flags]
        bare = [sys.executable, "-c", BARE]
        server, empty = opened.enter_context(_open(ours)), opened.enter_context(_open(bare))
        rows = [
            compare(
                "warm file.read over stdio / the SDK's empty tool",
                lambda: server.call("file.read", path="small.txt"),
                lambda: empty.call("empty"),
                1.5,
                rounds=400,
            ),
            compare("start to tools/list / the SDK's bare server", _start(ours), _start(bare), 1.2, rounds=10),
        ]
        return rows + _beside_the_peer(server, root, opened)


def _fill(root: Path) -> None:
    (root / "src").mkdir(parents=True)
    (root / "small.txt").write_text("".join(f"line {n:04} of a small file\n" for n in range(150)))
    for number in range(500):
        (root / "src" / f"module{number:03}.py").write_text(f"value = {number}\n" * 100)


def _start(command: list[str]) -> Callable[[], None]:
    def start() -> None:
        with _open(command) as pipe:
            pipe.ask("tools/list", {})

    return start


def _beside_the_peer(server: Pipe, root: Path, opened: ExitStack) -> list[Row]:
    """No limit of ours, only for comparison: the same work by the npm package of the reference servers."""
    node = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if node is None or not PEER.exists():
        return []
    peer, path, turn = opened.enter_context(_open([node, str(PEER), str(root)])), str(root / "small.txt"), [0, 0]

    def words(who: int) -> tuple[str, str]:
        turn[who] += 1
        return ("line 0007", "LINE 0007") if turn[who] % 2 else ("LINE 0007", "line 0007")

    def our_edit() -> None:
        old, new = words(0)
        server.call("file.patch", path="small.txt", patches=[{"find": f"{old} of", "replace": f"{new} of"}])

    shutil.copy(path, root / "peer.txt")

    def their_edit() -> None:
        old, new = words(1)
        peer.call("edit_file", path=str(root / "peer.txt"), edits=[{"oldText": f"{old} of", "newText": f"{new} of"}])

    pairs: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
        ("read", lambda: server.call("file.read", path="small.txt"), lambda: peer.call("read_text_file", path=path)),
        ("list", lambda: server.call("file.list", path="src"), lambda: peer.call("list_directory", path=f"{root}/src")),
        ("edit", our_edit, their_edit),
        (
            "search",
            lambda: server.call("file.list", path=".", pattern="**/*99.py"),
            lambda: peer.call("search_files", path=str(root), pattern="**/*99.py"),
        ),
    ]
    return [
        compare(f"{name} / npm server-filesystem", mine, theirs, math.inf, rounds=50) for name, mine, theirs in pairs
    ]


if __name__ == "__main__":
    show("MCP", run())
