"""Tests what the server over HTTP does with malformed, large, slow and many requests."""

import contextlib
import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from support.mcp_client import over_http
from support.raw_http import HEADERS, INITIALIZE, LIST, PATIENCE, connect, is_up, set_limits, status_of, usage_of


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
    ],
)
def test_http_malformed_request_is_refused_with_reason(
    url: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    found, text = status_of(url, headers, content)
    assert (found, bool(text)) == (status, True), text
    assert is_up(url)


def test_http_body_beyond_limit_is_refused_with_reason(url: str) -> None:
    found, text = status_of(url, {}, b"x" * 33_554_433)
    assert (found, bool(text)) == (413, True), text
    assert is_up(url)


def test_http_body_without_length_is_capped(url: str) -> None:
    def pour() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1_000_000

    try:
        answer = httpx2.post(url, content=pour(), headers=HEADERS, timeout=PATIENCE)
        assert answer.status_code == 413
    except httpx2.NetworkError:
        pass  # the server had answered and closed before all of it was sent
    assert is_up(url)


HALF = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"


def test_http_unfinished_request_gets_408_and_is_closed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, tmp_path, request_seconds=0.5)
    with over_http("--root", root) as (url, _):
        for said in (b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n", HALF):
            with connect(url, said) as connection:
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
    set_limits(monkeypatch, tmp_path, request_seconds=600, **limits)
    head, most, rest = _parts(size, chunked=chunked)
    with contextlib.ExitStack() as opened, over_http("--root", root) as (url, process):
        before = usage_of(process.pid)[2]
        sent = []
        for _ in range(60):
            connection = opened.enter_context(connect(url, head))
            assert connection.recv(4096).startswith(b"HTTP/1.1 100")  # the server waits for the body, so it counts
            with contextlib.suppress(ConnectionError):  # dropped while it was sent; checked below
                connection.sendall(most)
            sent.append(connection)
        given_up = [_finish(connection) for connection in sent[:-room]]
        held = usage_of(process.pid)[2] - before
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
        silent.extend(connect(url) for _ in range(1000))
        assert is_up(url)
    finally:
        for connection in silent:
            connection.close()


def test_http_sessions_that_stateless_client_names_are_limited(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a handshake chooses the names of its sessions; each has threads and open files."""
    set_limits(monkeypatch, tmp_path, http_sessions=3)
    (root / "a.txt").write_text("x\n")
    with over_http("--root", root) as (url, process):
        answers = [status_of(url, STATELESS, _reading(f"s{number}"))[1] for number in range(20)]
        again = status_of(url, STATELESS, _reading("s0"))[1]
        threads = usage_of(process.pid)[1]
    assert ["isError" in each for each in answers] == [True] * 3 + [False] * 17
    assert "3 sessions already" in answers[3]
    assert '"isError":false' in again
    assert threads < 20


@pytest.mark.parametrize("name", ["x" * 201, 7, ["s"], {"s": 1}])
def test_http_session_with_odd_name_is_refused(url: str, name: object) -> None:
    assert "must be a string of at most 200 characters" in status_of(url, STATELESS, _reading(name))[1]


STATELESS = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "file.read"}


def _reading(session: object) -> bytes:
    """Return a call of `file.read` in a named session."""
    meta = {
        "handrail/session": session,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    params = {"name": "file.read", "arguments": {"path": "a.txt"}, "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
