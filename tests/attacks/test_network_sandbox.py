"""Attacks the network of commands that may reach a list of hosts, from inside real sandboxes.

The servers are on loopback of this machine. A command has a loopback of its own, so it reaches them only through the
proxy, and only if the setting `network` names their address.
"""

import contextlib
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.loopback_server import Site, page

from handrail import ToolResult, Workspace
from handrail.kernel.sandbox import find_bwrap

pytestmark = pytest.mark.sandbox
CONNECT = """
import os, socket, sys
name, port = os.environ["HTTP_PROXY"].removeprefix("http://").split(":")
proxy = socket.create_connection((name, int(port)), 20)
proxy.sendall(f"CONNECT {sys.argv[1]} HTTP/1.1\\r\\nHost: {sys.argv[1]}\\r\\n\\r\\n".encode())
print(proxy.recv(100).split()[1].decode())
"""
DIRECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(page(b"reached")) as found:
        yield found


@contextlib.contextmanager
def opened(root: Path, *hosts: str, **settings: Any) -> Iterator[Workspace]:
    with Workspace(str(root), approve="auto", network=hosts, **settings) as workspace:
        run(workspace, "true")
        if run(workspace, "true").metadata["sandbox"] != "hosts":
            pytest.skip("no bubblewrap here")
        yield workspace


def run(workspace: Workspace, command: str) -> ToolResult:
    return workspace.tools("bash").call("bash", {"command": command})


def script(workspace: Workspace, text: str, *words: str) -> ToolResult:
    Path(workspace.root, "script.py").write_text(text)
    return run(workspace, f"python3 script.py {' '.join(words)}")


def printed(result: ToolResult) -> str:
    return str(output_of(result)["output"])


def failed(result: ToolResult) -> bool:
    return bool(output_of(result)["returncode"])


def output_of(result: ToolResult) -> dict[str, Any]:
    assert isinstance(result.output, dict)
    return result.output


def test_named_host_is_reached_and_other_is_explained(root: Path, site: Site) -> None:
    named = f"127.0.0.1:{site.port}"
    with opened(root, named) as workspace:
        assert printed(script(workspace, CONNECT, named)) == "200\n"
        refused = script(workspace, CONNECT, "example.org:443")
        assert printed(refused) == "403\n"
        says = "commands cannot reach example.org: it is not in `network`, the list of hosts that the user named; ask"
        assert [each.startswith(says) for each in refused.warnings] == [True]
        assert script(workspace, CONNECT, named).warnings == []


@pytest.mark.parametrize("dialect", ["claude", "codex-2026", "codex", "gemini-3"])
def test_refused_host_is_explained_in_each_way_to_run(root: Path, dialect: str) -> None:
    """Runs the command in a shell that remembers, as a job, in a terminal and by itself."""
    calls = {
        "claude": ("bash", "command"),
        "codex-2026": ("exec_command", "cmd"),
        "codex": ("exec_command", "cmd"),
        "gemini-3": ("run_shell_command", "command"),
    }
    tool, parameter = calls[dialect]
    (root / "script.py").write_text(CONNECT)
    with opened(root, "github.com") as workspace:
        text = "python3 script.py example.org:443"
        extra = {"session_id": "s"} if dialect == "codex" else {}
        result = workspace.tools(dialect).call(tool, {parameter: text, **extra})
        assert any("cannot reach example.org" in each for each in result.warnings), result


def test_command_reaches_nothing_without_the_proxy(root: Path, site: Site) -> None:
    named = f"127.0.0.1:{site.port}"
    with opened(root, named) as workspace:
        for address in ("127.0.0.1", "192.0.2.1", "::1"):
            result = script(workspace, DIRECT, address, str(site.port))
            assert failed(result)
        assert site.requests == []
        direct = "commands reach hosts only through the proxy that HTTPS_PROXY names, and a program did not use it"
        assert direct in script(workspace, DIRECT, "192.0.2.1", "80").warnings


def test_proxy_of_another_workspace_is_out_of_reach(tmp_path: Path, site: Site) -> None:
    named = f"127.0.0.1:{site.port}"
    roots = [tmp_path / "a", tmp_path / "b"]
    for each in roots:
        each.mkdir()
    with (
        opened(roots[0], named) as allowed,
        opened(roots[1], "github.com") as other,
        Workspace(str(roots[1]), approve="auto") as without,
    ):
        port = printed(run(allowed, "echo ${HTTP_PROXY##*:}")).strip()
        own = printed(run(other, "echo ${HTTP_PROXY##*:}")).strip()
        if port != own:
            assert failed(script(other, DIRECT, "127.0.0.1", port))
        assert failed(script(without, DIRECT, "127.0.0.1", port))
        with pytest.raises(OSError):  # noqa: PT011  no server of this machine has the port, or another one has it
            _connect_from_outside(int(port))


def _connect_from_outside(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.sendall(b"CONNECT github.com:443 HTTP/1.1\r\nHost: github.com:443\r\n\r\n")
        if not sock.recv(100).startswith(b"HTTP/1.1 403"):
            raise OSError("another server has this port")


def test_proxy_starts_again_with_new_sandbox(root: Path, site: Site) -> None:
    named = f"127.0.0.1:{site.port}"
    with opened(root, named) as workspace:
        first = printed(run(workspace, "echo $HTTP_PROXY"))
        os.rmdir(root / ".vscode")  # a guarded name that was replaced: the next command gets a new sandbox
        assert printed(script(workspace, CONNECT, named)) == "200\n"
        assert first.startswith("http://127.0.0.1:")


def test_reduced_sandbox_reaches_no_host(root: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    named = f"127.0.0.1:{site.port}"
    with Workspace(str(root), approve="auto", network=[named], allow_reduced=True) as workspace:
        result = script(workspace, DIRECT, "127.0.0.1", str(site.port))
        if result.error is not None:
            pytest.skip("no Landlock here")
        assert failed(result)
        assert result.metadata["sandbox"] == "reduced"
        assert printed(run(workspace, "echo =$HTTP_PROXY=")) == "==\n"
    assert site.requests == []


def test_proxy_ends_with_session(root: Path) -> None:
    with opened(root, "github.com"):
        assert "handrail-network" in {each.name for each in threading.enumerate()}
    assert "handrail-network" not in {each.name for each in threading.enumerate()}


def test_log_names_every_connection(root: Path, site: Site, tmp_path: Path) -> None:
    named, log = f"127.0.0.1:{site.port}", tmp_path / "log"
    with opened(root, named, log=str(log)) as workspace:
        script(workspace, CONNECT, "user-data.example.org:443")
        run(workspace, f"http_proxy=$HTTP_PROXY curl -s --noproxy '' http://{named}/secret")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    found = [line for line in lines if line["event"] == "connection"]
    assert {(line.get("site"), line.get("refused", "")) for line in found} >= {("user-data.example.org", "not_named")}


def test_process_left_behind_still_asks_the_proxy(root: Path, site: Site) -> None:
    """Leaves a process in the background; the list is the same for it as for every command."""
    with opened(root, "github.com") as workspace:
        (root / "script.py").write_text(CONNECT)
        run(workspace, f"(python3 script.py 127.0.0.1:{site.port} > answer; sync) & wait")
        assert (root / "answer").read_text() == "403\n"


def test_git_and_curl_use_the_proxy(root: Path, site: Site) -> None:
    named = f"127.0.0.1:{site.port}"
    with opened(root, named) as workspace:
        answer = run(workspace, f"env -u no_proxy -u NO_PROXY curl -sS http://{named}/x")
        if "not found" in printed(answer):
            pytest.skip("no curl here")
        assert printed(answer) == "reached"
        assert "403" in printed(run(workspace, "curl -sS https://example.org/"))
        if subprocess.run(["git", "--version"], capture_output=True, check=False).returncode == 0:
            refused = run(workspace, "git ls-remote https://example.org/x.git")
            assert any("cannot reach example.org" in each for each in refused.warnings)
