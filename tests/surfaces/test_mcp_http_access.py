"""Tests who may use the server over HTTP: hosts, origins and tokens."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from support.mcp_client import command, over_http
from support.raw_http import HEADERS, INITIALIZE, PATIENCE, status_of, status_of_list

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with two tokens."""
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root")
    (home / "tokens").write_text(f"{TOKEN}\n{TOKEN[::-1]}\n")
    with over_http("--root", root, "--token-file", home / "tokens", home=home) as (address, _):
        yield address


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
    found, text = status_of(url, headers)
    assert found == status, text
    if status != 200:
        assert "--allow-host" not in json.loads(text)["error"]["message"]


def test_http_allow_host_is_served_as_host_and_origin(root: Path) -> None:
    with over_http("--root", root, "--allow-host", "tools.example") as (url, _):
        assert status_of(url, {"host": "tools.example", "origin": "https://tools.example"})[0] == 200


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
    statuses = [
        status_of_list(locked, session | {"authorization": f"Bearer {token}"}) for token in (TOKEN, TOKEN[::-1])
    ]
    assert statuses == [200, 404]


def test_http_without_host_serves_only_loopback(root: Path) -> None:
    with over_http("--root", root, "--http", ":0") as (address, _):
        assert urlsplit(address).hostname == "127.0.0.1"


def test_http_public_address_requires_token(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN}\n")
    with over_http("--root", root, "--http", "0.0.0.0:0", "--token-file", tmp_path / "tokens") as (address, _):
        given = {"authorization": f"Bearer {TOKEN}"}
        assert [status_of(address, headers)[0] for headers in ({}, given)] == [401, 200]


def test_http_short_token_is_refused_at_start(root: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("short\n")
    out = subprocess.run(
        command("--root", root, "--http", "0.0.0.0:0", "--token-file", tmp_path / "tokens"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (out.returncode, "shorter than 16 characters" in out.stderr) == (2, True)
