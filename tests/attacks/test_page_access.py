"""Attacks the page's server: other sites, other processes, other users, stolen and guessed secrets, floods."""

import os
import shutil
import socket
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from support.page_client import KEY, PageClient, RunningPage, running_page, writing
from support.raw_http import usage_of
from support.sandboxes import PYTHON

from handrail import Workspace
from handrail.kernel.page.page_place import page_directory, page_secret, page_socket


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningPage, PageClient]]:
    state = str(tmp_path_factory.mktemp("page"))
    with running_page(state) as started:
        entered = PageClient(started)
        yield started, entered
        entered.close()


@pytest.fixture
def page(shared: tuple[RunningPage, PageClient], monkeypatch: pytest.MonkeyPatch) -> RunningPage:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", shared[0].environment["HANDRAIL_STATE_DIR"])
    return shared[0]


@pytest.fixture
def client(page: RunningPage, shared: tuple[RunningPage, PageClient]) -> PageClient:
    assert page.process.poll() is None
    return shared[1]


ASKED = {"question": "p1:question 0"}
FOREIGN = {
    "rebound name": {"Host": "attacker.example:{port}"},
    "rebound name without port": {"Host": "attacker.example"},
    "address without port": {"Host": "127.0.0.1"},
    "other port": {"Host": "127.0.0.1:1"},
    "name that begins like ours": {"Host": "127.0.0.1:{port}.attacker.example"},
    "any address": {"Host": "0.0.0.0:{port}"},
    "foreign origin": {"Origin": "https://attacker.example"},
    "origin of another port": {"Origin": "http://127.0.0.1:1"},
    "opaque origin": {"Origin": "null"},
    "same origin with https": {"Origin": "https://127.0.0.1:{port}"},
    "same site": {"Sec-Fetch-Site": "same-site"},
    "cross site": {"Sec-Fetch-Site": "cross-site"},
    "form": {"Content-Type": "application/x-www-form-urlencoded"},
    "form as text": {"Content-Type": "text/plain"},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_page_request_of_another_site_is_refused(client: PageClient, case: str) -> None:
    """A browser sends the cookie, and the attacker even knows the key."""
    headers = {name: value.format(port=client.page.port) for name, value in FOREIGN[case].items()}
    assert client.post("/api/diff", ASKED).status_code == 404  # it passes, and asks for what is not there
    assert client.post("/api/diff", ASKED, headers).status_code in (403, 415, 421)


@pytest.mark.parametrize("missing", [KEY, "Cookie", "Origin"])
def test_page_request_without_one_of_its_proofs_is_refused(client: PageClient, missing: str) -> None:
    headers = {name: value for name, value in client.headers.items() if name != missing}
    assert client.http.post("/api/diff", json=ASKED, headers=headers).status_code in (401, 403)


def test_page_stolen_cookie_alone_opens_nothing(page: RunningPage, client: PageClient) -> None:
    """Browsers send cookies to every port: a server of the agent on 127.0.0.1 gets this one."""
    other = PageClient(page, page.another_address().partition("#")[2])
    for key in ("", "new", other.key):
        answer = client.post("/api/diff", ASKED, {KEY: key})
        assert answer.status_code == 401
    other.close()


def test_page_answers_no_request_of_another_method(client: PageClient) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        answer = client.http.request(method, "/api/answer", headers=client.headers)
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/api/events", "/nothing"])
def test_page_every_answer_has_the_security_headers(page: RunningPage, path: str) -> None:
    headers = httpx2.get(f"{page.origin}{path}").headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} <= {
        each.strip() for each in policy.split(";")
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../__init__.py", "/static/%2e%2e/page_app.py", "/static//etc/passwd", "/page.css"]
)
def test_page_serves_only_its_own_files(page: RunningPage, path: str) -> None:
    with socket.create_connection(("127.0.0.1", page.port), 60) as link, link.makefile("rb") as answer:
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nConnection: close\r\n\r\n".encode())
        assert b" 404 " in answer.readline()


def test_page_token_opens_once_and_guesses_do_not_open(page: RunningPage) -> None:
    token = page.another_address().partition("#")[2]
    enter = {KEY: "new", "Origin": page.origin}
    for guess in ("", "x" * 43, token[:-1], token + "=", token.swapcase(), None, 1, ["a"]):
        body = {"token": guess}
        assert httpx2.post(f"{page.origin}/api/enter", json=body, headers=enter).status_code == 403
    for site in ({KEY: "new", "Origin": "https://attacker.example"}, {"Origin": page.origin}, {KEY: "new"}):
        assert httpx2.post(f"{page.origin}/api/enter", json={"token": token}, headers=site).status_code == 403
    first = httpx2.post(f"{page.origin}/api/enter", json={"token": token}, headers=enter)
    again = httpx2.post(f"{page.origin}/api/enter", json={"token": token}, headers=enter)
    assert (first.status_code, again.status_code) == (200, 403)
    cookie = first.headers["set-cookie"]
    assert f"handrail-{page.port}=" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert len(token) == 43  # 256 bits in base64


def test_page_listens_on_loopback_only(page: RunningPage) -> None:
    name = f"{page.port:04X}"
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    addresses = {line[1] for line in listening if line[1].endswith(f":{name}") and line[3] == "0A"}
    assert addresses == {f"0100007F:{name}"}


def test_page_files_are_private(page: RunningPage) -> None:
    assert page.process.poll() is None
    modes = [stat.S_IMODE(os.stat(each).st_mode) for each in (page_directory(), page_socket(), page_secret())]
    assert modes == [0o700, 0o600, 0o600]


def _connects(path: str, first: bytes) -> bytes:
    """Return what the server says to a process that shows `first`."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(60)
        link.connect(path)
        link.sendall(first)
        return link.recv(100)


def test_page_process_without_the_secret_is_sent_away(page: RunningPage) -> None:
    """A command at the level `reduced` may reach the socket, but cannot read the secret beside it."""
    assert page.process.poll() is None
    for hello in (b"{}\n", b'{"type":"hello","secret":"guess","process":""}\n{"type":"address"}\n', b"x" * 100 + b"\n"):
        assert _connects(page_socket(), hello) == b""


@pytest.mark.root
@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="there is no Python that every user can run")
def test_page_other_user_reaches_neither_socket_nor_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the directories above are open, the socket and the secret are not."""
    top = tempfile.mkdtemp()
    os.chmod(top, 0o755)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", top)
    attack = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        s.connect(name) if name.endswith('socket') else open(name)\n"
        "        print('reached', name)\n"
        "    except PermissionError: pass\n"
    )
    try:
        with running_page() as page:
            os.chmod(page_directory(), 0o755)
            PageClient(page).close()
            command = ["/usr/bin/python3", "-c", attack, page_socket(), page_secret()]
            ran = subprocess.run(
                command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=True
            )
            assert ran.stdout == ""
    finally:
        shutil.rmtree(top)


@pytest.mark.sandbox
def test_page_sandboxed_command_with_network_cannot_answer_its_own_question(
    root: Path, page: RunningPage, client: PageClient
) -> None:
    """At the level `network` a command shares the loopback interface: it knows the port, and lacks the token."""
    attack = f"""
import json, os, urllib.error, urllib.request
base = "http://127.0.0.1:{page.port}"
headers = {{"Content-Type": "application/json", "Origin": base, "{KEY}": "x", "Cookie": "handrail-{page.port}=x"}}
for path in ("/api/answer", "/api/enter", "/api/events"):
    body = None if path == "/api/events" else json.dumps({{"question": "x", "answer": "once", "token": "x"}}).encode()
    try:
        print(path, urllib.request.urlopen(urllib.request.Request(base + path, body, headers)).status)
    except urllib.error.HTTPError as error:
        print(path, error.code)
print(os.path.exists({page_directory()!r}))
"""
    (root / "attack.py").write_text(attack)
    with Workspace(root, approve="auto", sandbox="network") as workspace:
        ran = workspace.call("copilot", "run_in_terminal", {"command": f"{PYTHON} attack.py"})
    lines = [line for line in ran.text.splitlines() if line.startswith(("/api", "True", "False"))]
    if ran.metadata["sandbox"] != "network":
        pytest.skip(f"this machine gives the level {ran.metadata['sandbox']}")
    assert lines == ["/api/answer 401", "/api/enter 403", "/api/events 401", "False"]


def test_page_thousand_connections_leave_it_usable(root: Path, page: RunningPage, client: PageClient) -> None:
    flood = []
    try:
        for n in range(1000):
            link = socket.create_connection(("127.0.0.1", page.port), 60)
            link.sendall(b"POST /api/enter HTTP/1.1\r\nHost: " if n % 2 else b"")
            flood.append(link)
        followed = client.follow()
        with Workspace(root) as workspace:
            work = writing(workspace)
            card = followed.question()
            assert client.post("/api/answer", {"question": card["id"], "answer": "once"}).status_code == 200
            assert work.result().success
        followed.close()
    finally:
        for link in flood:
            link.close()


def test_page_slow_bodies_are_bounded(page: RunningPage, client: PageClient) -> None:
    """A body that is too long is refused before it arrives; many unfinished ones hold little memory."""
    head = f"POST /api/enter HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nOrigin: {page.origin}\r\n{KEY}: new\r\n"
    head += "Content-Type: application/json\r\nContent-Length: "
    with socket.create_connection(("127.0.0.1", page.port), 60) as link, link.makefile("rb") as answer:
        link.sendall(f"{head}100000000\r\n\r\n".encode())
        assert b" 413 " in answer.readline()
    before = usage_of(page.process.pid)[2]
    slow = [socket.create_connection(("127.0.0.1", page.port), 60) for _ in range(300)]
    try:
        for link in slow:
            link.sendall(f"{head}4000\r\n\r\n".encode() + b"x" * 3000)
        assert client.post("/api/diff", ASKED).status_code == 404
        assert usage_of(page.process.pid)[2] < before + 64_000
    finally:
        for link in slow:
            link.close()


def test_page_follows_a_bounded_number_of_windows(client: PageClient) -> None:
    windows = [client.follow() for _ in range(32)]
    for each in windows:
        each.next()
    headers = {KEY: client.key, "Cookie": client.cookie}
    assert client.http.get("/api/events", headers=headers).status_code == 503
    for each in windows:
        each.close()


def test_page_early_answer_is_not_taken(root: Path, client: PageClient) -> None:
    """A key that was pressed for something else must not answer a question that has just appeared."""
    followed = client.follow()
    with Workspace(root) as workspace:
        for n in range(20):  # a slow machine may be too late to be early
            work = writing(workspace, f"{n}.txt")
            answer = {"question": followed.of("question")["question"]["id"], "answer": "once"}
            if client.post("/api/answer", answer).status_code == 425:
                break
            work.result()
        threading.Event().wait(0.45)
        assert not (root / f"{n}.txt").exists()
        assert client.post("/api/answer", answer | {"answer": "no"}).status_code == 200
        assert not work.result().success
    followed.close()


def test_page_processes_without_the_secret_hold_little_memory(
    root: Path, page: RunningPage, client: PageClient
) -> None:
    """A confined command that reaches the socket sends endless lines, or says nothing, on many connections."""
    before = usage_of(page.process.pid)[2]
    flood = []
    try:
        for n in range(200):
            link = socket.socket(socket.AF_UNIX)
            link.settimeout(0.2)
            link.connect(page_socket())
            with suppress(OSError):
                link.sendall(b"x" * (1 << 21) if n % 2 else b"")
            flood.append(link)
        assert usage_of(page.process.pid)[2] < before + 64_000
    finally:
        for link in flood:
            link.close()
    followed = client.follow()
    followed.next()
    with Workspace(root) as workspace:
        workspace.call("file", "file.list", {"path": "."})
        followed.of("call")
    followed.close()


def test_page_stream_carries_a_proof_that_no_request_names(client: PageClient) -> None:
    headers = {KEY: client.key, "Cookie": client.cookie}
    with client.http.stream("GET", "/api/events", headers=headers) as stream:
        proof = stream.headers["x-handrail-server"]
    assert len(proof) == 43
    assert proof not in (client.key, client.cookie.partition("=")[2])
    assert client.post("/api/diff", ASKED, {KEY: proof}).status_code == 401
