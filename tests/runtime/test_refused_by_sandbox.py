"""Checks that an answer says what the sandbox refused, with real commands, and says nothing if it refused nothing."""

import shlex
from pathlib import Path

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace

pytestmark = pytest.mark.sandbox
NETWORK = "the sandbox blocks the network; only the user can allow it"
TRIED = (
    "the command succeeded, but a part of it tried to reach the network, which the sandbox blocks; only the user can "
    "allow it"
)
SERVER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(("localhost", server.getsockname()[1]))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
print(socket.getfqdn(), socket.gethostbyname(socket.gethostname()))
"""
QUIET = """
import socket
try:
    socket.create_connection(("example.org", 80))
except OSError:
    pass
"""


@pytest.fixture(autouse=True)
def strict(root: Path) -> None:
    if not has_bubblewrap(root):
        pytest.skip("the counters are those of a network namespace")


def warnings(workspace: Workspace, command: str) -> list[str]:
    return workspace.call("codex", "shell", {"command": command}).warnings


@pytest.mark.parametrize(
    "command",
    [
        "(exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null | head",
        "(exec 3<>/dev/tcp/example.org/80) 2>/dev/null; true",
        "getent hosts example.org | head",
        "(exec 3<>/dev/udp/2001:db8::1/53) 2>/dev/null; exit 6",
    ],
)
def test_attempt_to_reach_network_is_told(workspace: Workspace, command: str) -> None:
    assert warnings(workspace, command) == [NETWORK]  # as the first command, which starts along with the sandbox
    assert warnings(workspace, command) == [NETWORK]


def test_attempt_of_command_that_succeeds_is_noted(workspace: Workspace) -> None:
    assert warnings(workspace, f"python3 -c {shlex.quote(QUIET)}") == [TRIED]


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "hostname; getent hosts localhost",
        "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6",
        f"python3 -c {shlex.quote(SERVER)}",
        "(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null; true",
    ],
)
def test_command_without_attempt_is_not_told_about_network(workspace: Workspace, command: str) -> None:
    assert warnings(workspace, command) == []
    assert warnings(workspace, command) == []


def test_attempt_of_earlier_background_process_is_not_told(workspace: Workspace) -> None:
    trying = "while sleep 0.05; do (exec 3<>/dev/tcp/192.0.2.1/80); done >/dev/null 2>&1 &"
    workspace.call("codex", "shell", {"command": trying})
    assert not [each for each in warnings(workspace, "sleep 0.3") if each == NETWORK]


def test_level_with_network_is_not_told(root: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="network") as workspace:
        assert warnings(workspace, "(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null; true") == []


@pytest.mark.parametrize("command", ["touch /usr/x", "touch /usr/x | cat", "touch /usr/x 2>&1 | head -1"])
def test_read_only_place_is_told_behind_pipes_too(workspace: Workspace, command: str) -> None:
    (warning,) = warnings(workspace, command)
    assert "blocks writes outside the workspace (/usr/x)" in warning


def test_guarded_file_is_told_behind_pipe_too(workspace: Workspace) -> None:
    (warning,) = warnings(workspace, "echo x > .mcp.json/x | cat")
    assert "blocks this change (.mcp.json/x)" in warning
