"""Tests the server over HTTP: hosts, tokens, limits and many clients at once."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support.mcp_client import ERAS, call, command, envelope, over_http, talk

PATIENCE = 300
SECONDS = float(os.environ.get("HANDRAIL_TEST_SECONDS", "5"))
TOKEN = "a-token-of-some-length"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start one server for all tests that change nothing."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    (root / "a.txt").write_text("one\n")
    with over_http("--root", root, home=home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with two tokens."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    (home / "tokens").write_text(f"{TOKEN}\n{TOKEN[::-1]}\n")
    with over_http("--root", root, "--token-file", home / "tokens", home=home) as (address, _):
        yield address


def _status(url: str, headers: dict[str, str], content: bytes | None = None) -> tuple[int, str]:
    body = json.dumps(INITIALIZE).encode() if content is None else content
    answer = httpx2.post(url, content=body, headers=HEADERS | headers, timeout=PATIENCE)
    return answer.status_code, answer.text


def _listed(url: str, headers: dict[str, str]) -> int:
    return httpx2.post(url, json=LIST, headers=HEADERS | headers, timeout=PATIENCE).status_code


@pytest.mark.parametrize("era", ERAS)
def test_http_client_lists_and_calls_tools(url: str, era: str) -> None:
    async def act(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        return names, envelope(await client.call_tool("file.read", {"path": "a.txt"}))["output"]["content"]

    names, content = talk(url, act, era)
    assert ("file.read" in names, content) == (True, "     1\tone")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:80"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "localhost.evil.example"}, 421),
        ({"host": "["}, 421),
        ({"host": "[::1].evil.example"}, 421),
        ({"host": "[::1]evil.example"}, 421),
        ({"host": "evil.example:80@localhost"}, 421),
        ({"host": "evil.example@localhost"}, 421),
        ({"host": "localhost:80:80"}, 421),
        ({"host": "localhost:80/evil.example"}, 421),
        ({"host": "localhost#evil.example"}, 421),
        ({"host": "localhost?evil.example"}, 421),
        ({"host": "[127.0.0.1]"}, 421),
        ({"host": "[localhost]"}, 421),
        ({"host": "localhost evil.example"}, 421),
        ({"host": "LOCALHOST:8080"}, 200),
        ({"host": "192.0.2.1"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://127.0.0.1:3000"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "http://192.0.2.1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1]:3000"}, 200),
        ({"origin": "http://[::1].evil.example"}, 403),
        ({"origin": "http://evil.example:80@localhost"}, 403),
        ({"origin": "http://evil.example/://localhost"}, 403),
        ({"origin": "http://localhost/evil.example"}, 403),
        ({"origin": "localhost"}, 403),
        ({"origin": "://localhost"}, 403),
    ],
)
def test_http_only_known_hosts_and_origins_are_served(url: str, headers: dict[str, str], status: int) -> None:
    found, text = _status(url, headers)
    assert found == status, text
    if status != 200:
        assert "--allow-host" not in json.loads(text)["error"]["message"]


def test_http_allow_host_is_served_as_host_and_origin(root: Path) -> None:
    with over_http("--root", root, "--allow-host", "tools.example") as (url, _):
        assert _status(url, {"host": "tools.example", "origin": "https://tools.example"})[0] == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer {TOKEN}"}, 200),
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Bearer \xe9"}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
    ],
)
def test_http_token_is_required(locked: str, given: dict[str, str], status: int) -> None:
    headers = [(name.encode(), value.encode("latin-1")) for name, value in (HEADERS | given).items()]
    answer = httpx2.post(locked, json=INITIALIZE, headers=headers, timeout=PATIENCE)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) is (status == 401)


def test_http_session_belongs_to_its_token(locked: str) -> None:
    opened = httpx2.post(
        locked, json=INITIALIZE, headers=HEADERS | {"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
    )
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    statuses = [_listed(locked, session | {"authorization": f"Bearer {token}"}) for token in (TOKEN, TOKEN[::-1])]
    assert statuses == [200, 404]


def test_http_without_host_serves_only_loopback(root: Path) -> None:
    with over_http("--root", root, "--http", ":0") as (address, _):
        assert urlsplit(address).hostname == "127.0.0.1"


def test_http_public_address_requires_token(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN}\n")
    with over_http("--root", root, "--http", "0.0.0.0:0", "--token-file", tmp_path / "tokens") as (address, _):
        given = {"authorization": f"Bearer {TOKEN}"}
        assert [_status(address, headers)[0] for headers in ({}, given)] == [401, 200]


def test_http_short_token_is_refused_at_start(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("short\n")
    out = subprocess.run(
        command("--root", root, "--http", "0.0.0.0:0", "--token-file", tmp_path / "tokens"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (out.returncode, "shorter than 16 characters" in out.stderr) == (2, True)


def _is_up(url: str) -> bool:
    return bool(call(url, "file.read", {"path": "a.txt"}, ERAS[1])["success"])


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"nonsense", {}, 400),
        (b'{"jsonrpc": "2.0", "id": 1, "meth', {}, 400),
        (b"", {}, 400),
        (b"[" * 100_000, {}, 400),
        (json.dumps(LIST).encode(), {}, 400),
        (json.dumps(LIST).encode(), {"mcp-session-id": "unknown"}, 404),
        (json.dumps(LIST).encode(), {"mcp-protocol-version": "1999-01-01"}, 400),
        (b"x", {"content-type": "text/plain"}, 400),
        (b"x", {"accept": "image/png"}, 406),
        (b"x" * 33_554_433, {}, 413),
    ],
)
def test_http_malformed_request_is_refused_with_reason(
    url: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    found, text = _status(url, headers, content)
    assert (found, bool(text)) == (status, True), text
    assert _is_up(url)


def test_http_body_without_length_is_capped(url: str) -> None:
    def pour() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1_000_000

    try:
        answer = httpx2.post(url, content=pour(), headers=HEADERS, timeout=PATIENCE)
        assert answer.status_code == 413
    except httpx2.NetworkError:
        pass  # the server had answered and closed before all of it was sent
    assert _is_up(url)


def _connect(url: str, data: bytes = b"") -> socket.socket:
    parts = urlsplit(url)
    made = socket.create_connection((parts.hostname or "", parts.port or 0), PATIENCE)
    made.sendall(data)
    return made


HALF = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"


def _impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **limits: float) -> None:
    """Set limits of the server in the user's configuration."""
    home = tmp_path / "config"
    home.mkdir()
    lines = "".join(f"{name} = {value}\n" for name, value in limits.items())
    (home / "config.toml").write_text(f"[limits]\n{lines}")
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home))


def test_http_unfinished_request_gets_408_and_is_closed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _impatient(monkeypatch, tmp_path, request_seconds=0.5)
    with over_http("--root", root) as (url, _):
        for said in (b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n", HALF):
            with _connect(url, said) as connection:
                answer = b""
                while piece := connection.recv(4096):
                    answer += piece
                assert answer.startswith(b"HTTP/1.1 408"), said


def _finish(connection: socket.socket) -> bytes:
    """Return the answer until the server closes; nothing if it closed while the request was sent."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(4096):
            answer += piece
    return answer


MESSAGE = json.dumps(INITIALIZE).encode()


def _parts(size: int, *, chunked: bool) -> tuple[bytes, bytes, bytes]:
    """Return a request with a body of `size` bytes in three parts: head, all but the last byte, last byte."""
    body, headers = b" " * (size - len(MESSAGE)) + MESSAGE, HEADERS | {"host": "localhost", "expect": "100-continue"}
    length = {"transfer-encoding": "chunked"} if chunked else {"content-length": str(size)}
    lines = [f"{name}: {value}" for name, value in (headers | length).items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode()
    if not chunked:
        return head, body[:-1], body[-1:]
    return head, f"{size - 1:x}\r\n".encode() + body[:-1] + b"\r\n", b"1\r\n" + body[-1:] + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(
    ("limits", "size", "room"),
    [({"http_bodies": 5}, len(MESSAGE), 5), ({"message_bytes": 1_000_000, "http_bodies_bytes": 4_500_000}, 900_000, 5)],
    ids=["number", "size"],
)
def test_http_unfinished_bodies_over_limit_are_dropped_oldest_first(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limits: dict[str, float],
    size: int,
    room: int,
    chunked: bool,
) -> None:
    _impatient(monkeypatch, tmp_path, request_seconds=600, **limits)
    head, most, rest = _parts(size, chunked=chunked)
    with contextlib.ExitStack() as opened, over_http("--root", root) as (url, process):
        before = _usage(process.pid)[2]
        sent = []
        for _ in range(60):
            connection = opened.enter_context(_connect(url, head))
            assert connection.recv(4096).startswith(b"HTTP/1.1 100")  # the server waits for the body, so it counts
            with contextlib.suppress(ConnectionError):  # dropped while it was sent; checked below
                connection.sendall(most)
            sent.append(connection)
        given_up = [_finish(connection) for connection in sent[:-room]]
        held = _usage(process.pid)[2] - before
        for connection in sent[-room:]:
            connection.sendall(rest)
        answers = [connection.recv(4096) for connection in sent[-room:]]
    assert {answer[:12] for answer in given_up} <= {b"HTTP/1.1 408", b""}
    assert {answer[:12] for answer in answers} == {b"HTTP/1.1 200"}
    assert held < 40_000, held


@pytest.fixture
def many_files() -> Iterator[None]:
    """Raise the limit of open files to the maximum."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("many_files")
def test_http_thousand_silent_connections_do_not_block_others(url: str) -> None:
    silent: list[socket.socket] = []
    try:
        silent.extend(_connect(url) for _ in range(1000))
        assert _is_up(url)
    finally:
        for connection in silent:
            connection.close()


def test_http_idle_client_loses_session(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _impatient(monkeypatch, tmp_path, idle_seconds=0.5)
    with over_http("--root", root) as (url, _):
        opened = httpx2.post(url, json=INITIALIZE, headers=HEADERS, timeout=PATIENCE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        for pause in (1, 2, 4, 8, 16, 32):  # each request keeps the session alive, so the pauses grow
            time.sleep(pause)
            if _listed(url, session) == 404:
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


def _usage(pid: int) -> tuple[int, int, int]:
    """Return the open files, threads and kilobytes of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().split("\n") if ":" in line)
    return len(os.listdir(f"/proc/{pid}/fd")), int(status["Threads"]), int(status["VmRSS"].split()[0])


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
        files, threads, memory = _usage(process.pid)
        anyio.run(crowd, url, SECONDS)
        deadline = time.monotonic() + PATIENCE
        while (after := _usage(process.pid))[0] > files + 10 and time.monotonic() < deadline:
            time.sleep(0.2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    assert calls >= 200
    assert after[0] <= files + 10, (files, after)
    assert after[1] <= 2 * len(roots) + 20, (threads, after)  # a workspace with a write has its own thread
    assert after[2] <= memory + 60_000, (memory, after)
    assert children == ""
