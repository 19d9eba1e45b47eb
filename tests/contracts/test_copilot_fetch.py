"""Tests `fetch_webpage` of the `copilot` dialect against real servers on loopback, which the settings allow."""

import gzip
import socket
from pathlib import Path
from typing import Any

import pytest
from support.loopback_server import Site

from handrail import Question, ToolResult, Workspace
from handrail.policy.rules import Rule


def answer(body: bytes, kind: str = "text/html; charset=utf-8", *headers: str, status: str = "200 OK") -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def fetch(root: Path, url: str, **params: Any) -> ToolResult:
    with Workspace(str(root), approve="auto", allow_hosts=["127.0.0.1"]) as workspace:
        return workspace.call("copilot", "fetch_webpage", {"url": url, **params})


def test_fetch_html_returns_markdown_and_metadata(root: Path) -> None:
    page = b"<html><head><title>T</title></head><body><h1>Hello</h1><p>A <a href='/x'>link</a>.</p></body></html>"
    with Site(answer(page)) as site:
        result = fetch(root, site.url("/page"))
    assert isinstance(result.output, str)
    first, blank, *rest = result.output.split("\n")
    assert (first, blank) == (f"Fetched content from {site.url('/page')} ({len(page)} bytes)", "")
    assert "# Hello" in rest
    assert result.metadata == {
        "url": site.url("/page"),
        "status_code": 200,
        "content_length": len(page),
        "content_type": "text/html",
    }
    assert result.files_affected == []


def test_fetch_size_shown_in_kilobytes(root: Path) -> None:
    with Site(answer(b"x" * 5324, "text/plain")) as site:
        result = fetch(root, site.url())
    assert result.output == f"Fetched content from {site.url()} (5.2 KB)\n\n{'x' * 5324}"
    assert (result.metadata["content_length"], result.metadata["content_type"]) == (5324, "text/plain")


def test_fetch_too_large_page_is_truncated_with_message(root: Path) -> None:
    body = b"line\n" * 300_000
    packed = answer(gzip.compress(body), "text/plain", "Content-Encoding: gzip")
    for reply in (answer(body, "text/plain"), packed):
        with Site(reply) as site:
            result = fetch(root, site.url())
        assert result.success
        assert isinstance(result.output, str)
        first, second, blank, *_ = result.output.split("\n")
        assert first.startswith(f"Fetched content from {site.url()} (")
        assert (second, blank) == ("Error: Response too large (>1MB), truncating", "")
        assert result.metadata["truncated"] is True
        assert len(result.output) < 1024 * 1024 + 200


def test_fetch_beyond_a_lowered_limit_names_that_limit(root: Path) -> None:
    flags: dict[str, Any] = {"approve": "auto", "allow_hosts": ["127.0.0.1"], "limits": {"fetch_bytes": 2048}}
    with Site(answer(b"line\n" * 1000, "text/plain")) as site, Workspace(str(root), **flags) as workspace:
        result = workspace.call("copilot", "fetch_webpage", {"url": site.url()})
    assert isinstance(result.output, str)
    assert result.output.split("\n")[1] == "Error: Response too large (>2KB), truncating"


def test_fetch_redirect_followed_and_final_url_reported(root: Path) -> None:
    def reply(connection: socket.socket, head: bytes) -> None:
        if head.startswith(b"GET /old "):
            connection.sendall(
                b"HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        else:
            connection.sendall(answer(b"here", "text/plain"))

    with Site(reply) as site:
        result = fetch(root, site.url("/old"))
        loop = fetch(root, site.url("/old"))
    assert result.output == f"Fetched content from {site.url('/old')} (4 bytes)\n\nhere"
    assert result.metadata["url"] == site.url("/new")
    assert loop.success


def test_fetch_redirect_to_denied_url_is_refused(root: Path) -> None:
    with Site(answer(b"secret", "text/plain")) as other:
        moved = answer(b"", "text/plain", f"Location: HTTP://127.0.0.1:{other.port}/no", status="302 Found")
        with Site(moved) as site, Workspace(str(root), approve="auto", allow_hosts=["127.0.0.1"]) as workspace:
            workspace._rules.add(Rule("fetch_webpage", rf'.*"http://127\.0\.0\.1:{other.port}/no".*', deny=True))
            result = workspace.call("copilot", "fetch_webpage", {"url": site.url()})
        assert result.error is not None
        assert result.error.code == "approval_denied"
        assert other.requests == []


def test_fetch_redirect_loop_ends_with_error(root: Path) -> None:
    def reply(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with Site(reply) as site:
        result = fetch(root, site.url())
    assert result.output == "Error: Failed to fetch - more than 5 redirects"
    assert result.error is not None
    assert (result.error.code, bool(result.error.suggestion)) == ("network_error", True)


def test_fetch_redirect_to_private_address_is_refused(root: Path) -> None:
    def reply(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n")

    with Site(reply) as site:
        result = fetch(root, site.url())
    assert result.output == "Error: Failed to fetch - 10.0.0.1 is not a public address (private)"


def test_fetch_slow_server_times_out(root: Path) -> None:
    def reply(connection: socket.socket, head: bytes) -> None:
        site.stop.wait(300)

    with Site(reply) as site:
        result = fetch(root, site.url(), timeout_seconds=1)
    assert result.output == "Error: Request timed out after 1 seconds"
    assert result.error is not None
    assert result.error.code == "timeout"


def test_fetch_closed_port_reports_connection_refused(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = fetch(root, f"http://127.0.0.1:{port}/")
    assert result.output == "Error: Failed to fetch - connection refused"
    assert result.error is not None
    assert result.error.code == "network_error"


@pytest.mark.parametrize(
    ("kind", "body"), [("image/png", b"\x89PNG\r\n\x1a\n\0\0"), ("application/zip", b"PK\3\4\0\0")]
)
def test_fetch_binary_refused_with_type_and_size(root: Path, kind: str, body: bytes) -> None:
    with Site(answer(body, kind)) as site:
        result = fetch(root, site.url())
    assert result.output == f"Error: Failed to fetch - not text but {kind} ({len(body)} bytes)"


def test_fetch_error_page_returns_status_code(root: Path) -> None:
    with Site(answer(b"no such page", "text/plain", status="404 Not Found")) as site:
        result = fetch(root, site.url())
    assert result.metadata["status_code"] == 404


def test_fetch_denied_question_names_host_and_opens_no_connection(root: Path) -> None:
    asked: list[Question] = []

    def no(question: Question) -> bool:
        asked.append(question)
        return False

    with Site(answer(b"secret", "text/plain")) as site:
        with Workspace(str(root), approver=no, allow_hosts=["127.0.0.1"]) as workspace:
            result = workspace.call("copilot", "fetch_webpage", {"url": site.url()})
        assert site.requests == []
    assert result.error is not None
    assert result.error.code == "approval_denied"
    assert [question.host for question in asked] == [f"127.0.0.1:{site.port}"]


def test_copilot_read_and_create_limit_of_ten_megabytes(root: Path) -> None:
    """Test two limits of the catalogue that are too large for a contract file."""
    (root / "big.txt").write_bytes(b"0123456789abcde\n" * (11 * 65536))
    with Workspace(str(root), approve="auto") as workspace:
        whole = workspace.call("copilot", "read_file", {"path": "big.txt"})
        assert isinstance(whole.output, str)
        warning, header, *lines = whole.output.split("\n")
        assert warning == "Warning: File is larger than 10MB, showing only its beginning"
        assert header == f"Contents of big.txt (lines 1-{10 * 65536}):"
        assert len(lines) == 10 * 65536
        assert whole.metadata == {
            "total_lines": 11 * 65536,
            "lines_returned": 10 * 65536,
            "file_size_bytes": 11 * 1024 * 1024,
        }
        part = workspace.call("copilot", "read_file", {"path": "big.txt", "start_line": 700_000, "end_line": 700_001})
        assert part.output == "Contents of big.txt (lines 700000-700001):\n0123456789abcde\n0123456789abcde"
        fits = workspace.call("copilot", "create_file", {"path": "fits", "content": "x" * 10 * 1024 * 1024})
        assert fits.success
        larger = workspace.call("copilot", "create_file", {"path": "larger", "content": "x" * (10 * 1024 * 1024 + 1)})
        assert larger.output == "Error: Content for 'larger' is larger than 10MB"
        assert larger.error is not None
        assert larger.error.code == "invalid_parameters"
    assert not (root / "larger").exists()
