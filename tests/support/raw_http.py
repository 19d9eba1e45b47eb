"""Talks to the server over HTTP in raw requests, and looks at its process."""

import json
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from support.mcp_client import ERAS, call

PATIENCE = 300
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


def status_of(url: str, headers: dict[str, str], content: bytes | None = None) -> tuple[int, str]:
    """Return the status and the text of the answer to a request, which opens a session if no content is given."""
    body = json.dumps(INITIALIZE).encode() if content is None else content
    answer = httpx2.post(url, content=body, headers=HEADERS | headers, timeout=PATIENCE)
    return answer.status_code, answer.text


def status_of_list(url: str, headers: dict[str, str]) -> int:
    """Return the status of the answer to a request for the list of tools."""
    return httpx2.post(url, json=LIST, headers=HEADERS | headers, timeout=PATIENCE).status_code


def is_up(url: str) -> bool:
    """Return whether the server still reads `a.txt` for a client."""
    return bool(call(url, "file.read", {"path": "a.txt"}, ERAS[1])["success"])


def connect(url: str, data: bytes = b"") -> socket.socket:
    """Connect to the server and send it some bytes."""
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE)
    made.sendall(data)
    return made


def set_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **limits: float) -> None:
    """Set limits of the server in the user's configuration."""
    home = tmp_path / "config"
    home.mkdir()
    lines = "".join(f"{name} = {value}\n" for name, value in limits.items())
    (home / "config.toml").write_text(f"[limits]\n{lines}")
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home))


def usage_of(pid: int) -> tuple[int, int, int]:
    """Return the open files, threads and kilobytes of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().split("\n") if ":" in line)
    return len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["VmRSS"].split()[0])
