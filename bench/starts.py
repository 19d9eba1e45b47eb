"""Measures what every client waits for: start and reads of a server on a pipe, `handrail call`, many at once."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.measure import Row, compare, row
from bench.race.install import NODE
from bench.race.peers import OfficialFilesystem
from handrail import Workspace

ROUNDS, READS = 11, 100
IDLE_MB = 25.0
MANY = 200
PYTHON = [sys.executable, "-P"]
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


class Server:
    """One server on a pipe, from its start until its tools are listed."""

    def __init__(self, argv: list[str], tool: str, path: str) -> None:
        self._call = {"name": tool, "arguments": {"path": path}}
        began = time.perf_counter()
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._ask(HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert self._ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
        self.start_ms = (time.perf_counter() - began) * 1000

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, message: dict[str, Any]) -> Any:
        assert self._process.stdout
        self._send(message)
        return json.loads(self._process.stdout.readline())

    def read_ms(self) -> float:
        began = time.perf_counter()
        answer = self._ask({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": self._call})
        taken = (time.perf_counter() - began) * 1000
        assert "line 0050" in answer["result"]["content"][0]["text"], answer
        return taken

    def idle_mb(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in status if line.startswith("VmRSS"))) / 1024

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        root = Path(home, "root")
        root.mkdir()
        (root / "five.txt").write_text("".join(f"line {n:04} {'x' * 40}\n" for n in range(100)))
        return [*_pipe(root), _call(root), *_many(root)]


def _pipe(root: Path) -> list[Row]:
    peer = OfficialFilesystem(str(root), "")
    program = peer.package.bin("mcp-server-filesystem")

    def ours() -> Server:
        return Server(
            [*PYTHON, "-m", "handrail", "mcp", "--dialect", "file", "--root", str(root)], "file.read", "five.txt"
        )

    def theirs() -> Server:
        return Server([NODE, program, str(root)], "read_text_file", f"{root}/five.txt")

    if not os.path.exists(program) or shutil.which(NODE) is None:
        print("\nstarts: no npm filesystem server: make bench-peers")
        return [row("idle server on a pipe, in MB / 25", _alone(ours), IDLE_MB, 1.0)]
    starts: tuple[list[float], list[float]] = ([], [])
    reads: tuple[list[float], list[float]] = ([], [])
    idle = []
    for _ in range(ROUNDS + 1):
        servers = ours(), theirs()
        idle.append(servers[0].idle_mb())
        for kept, server in zip(starts, servers, strict=True):
            kept.append(server.start_ms)
        for _ in range(READS):
            for kept, server in zip(reads, servers, strict=True):
                kept.append(server.read_ms())
        for server in servers:
            server.close()
    middle = statistics.median
    return [
        row(
            "start on a pipe until tools are listed / npm filesystem", middle(starts[0][1:]), middle(starts[1][1:]), 0.4
        ),
        row("read 5 KB over a pipe / npm filesystem", middle(reads[0]), middle(reads[1]), 0.9),
        row("idle server on a pipe, in MB / 25", middle(idle), IDLE_MB, 1.0),
    ]


def _alone(ours: Callable[[], Server]) -> float:
    server = ours()
    try:
        return server.idle_mb()
    finally:
        server.close()


def _call(root: Path) -> Row:
    words = [*PYTHON, "-m", "handrail", "call", "file.read", "path=five.txt", "--root", str(root)]

    def act(argv: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)

    return compare("handrail call / python -c pass", act(words), act([sys.executable, "-c", "pass"]), 5.5, rounds=25)


def _many(root: Path) -> list[Row]:
    """Reads by many sessions at once, and the opening of one more session."""
    for number in range(MANY):
        (root / f"own{number}.txt").write_text("some text\n")
    with Workspace(str(root), approve="auto") as workspace, ThreadPoolExecutor(MANY) as pool:
        first = [_open_ms(workspace) for _ in range(40)]
        opened = [workspace.session() for _ in range(MANY)]
        later = [_open_ms(workspace) for _ in range(40)]

        def read(number: int) -> None:
            assert opened[number].tools("file").call("file.read", {"path": f"own{number}.txt"}).success

        def together() -> None:
            list(pool.map(read, range(MANY)))

        def one_by_one() -> None:
            for number in range(MANY):
                read(number)

        rows = [
            compare("200 reads by 200 threads / by one", together, one_by_one, 2.0),
            row(
                "open a session beside 200 others / the first", statistics.median(later), statistics.median(first), 2.0
            ),
        ]
        for session in opened:
            session.close()
    return rows


def _open_ms(workspace: Workspace) -> float:
    began = time.perf_counter()
    session = workspace.session()
    session.tools("file")
    taken = (time.perf_counter() - began) * 1000
    session.close()
    return taken
