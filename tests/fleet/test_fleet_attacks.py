"""Attacks a fleet from a workspace: host, neighbours, trees of the node, results of the driver, ports and sockets."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.fleet import Fleet
from handrail.fleet.fleet_workspace import FleetWorkspace
from handrail.kernel.fleet.node_directory import node_home

pytestmark = pytest.mark.sandbox


@pytest.fixture
def ws(fleet: Fleet, tree_root: Path) -> Iterator[FleetWorkspace]:
    with fleet.open(fleet.tree(str(tree_root))) as opened:
        yield opened


@contextmanager
def listening(family: int, address: object) -> Iterator[socket.socket]:
    """Listen as a service of the node does, such as one of Ray's."""
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind(address)  # type: ignore[arg-type]  # of the family
        server.listen()
        server.setblocking(False)
        yield server


CONNECT = """
import socket, sys
try:
    with socket.socket(getattr(socket, sys.argv[1])) as s:
        s.settimeout(3)
        s.connect(eval(sys.argv[2]))
        s.sendall(b"x")
    print("connected")
except OSError as error:
    print("refused")
"""


@pytest.mark.parametrize("kind", ["port", "socket file", "abstract socket"])
def test_command_of_workspace_reaches_no_service_of_node(kind: str, ws: FleetWorkspace, tmp_path: Path) -> None:
    """Ray's ports, the sockets of its nodes, and every other service: none takes a connection."""
    family, address = {
        "port": (socket.AF_INET, ("127.0.0.1", 0)),
        "socket file": (socket.AF_UNIX, str(tmp_path / "s")),
        "abstract socket": (socket.AF_UNIX, f"\0handrail-{os.getpid()}"),
    }[kind]
    with listening(family, address) as server:
        done = ws.exec(["python3", "-c", CONNECT, family.name, repr(server.getsockname())])
        assert done.stdout == b"refused\n"
        with pytest.raises(BlockingIOError):
            server.accept()


def test_command_of_workspace_inherits_no_handle_of_host(ws: FleetWorkspace) -> None:
    """The host is reached over a nameless socket, so only an inherited handle could reach it."""
    handles = ws.exec(["sh", "-c", "for each in /proc/self/fd/*; do readlink $each; done"]).stdout.decode().splitlines()
    assert handles
    assert not any(each.startswith("socket:") or ".jsonl" in each for each in handles), handles
    seen = ws.exec(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).stdout.decode()
    assert "handrail.fleet.host" not in seen


def test_workspace_reads_and_writes_nothing_of_node_and_driver(
    fleet: Fleet, ws: FleetWorkspace, node: str, tmp_path: Path
) -> None:
    """Names of the tree cache, the host's files and the driver's results, by commands and by file tools."""
    results = tmp_path / "out" / "results.jsonl"
    results.parent.mkdir()
    results.write_text('{"task": "t0", "passed": false}\n')
    home = Path(node_home(node))
    cached = next(path for path in (home / "trees").rglob("a.txt"))
    before = cached.read_bytes()
    for place in (results, cached):
        ws.exec(["sh", "-c", f"echo forged >> '{place}'; rm -f '{place}'; mv x '{place}'"])
        assert ws.exec(["cat", str(place)]).stdout == b""
        assert not ws.call("file", "file.read", {"path": str(place)}).success
        assert not ws.call("file", "file.write", {"path": str(place), "content": "forged"}).success
        ws.exec(["sh", "-c", f"ln -s '{place}' way; ln '{place}' twin"])
        assert not ws.call("file", "file.read", {"path": "way"}).success
        ws.exec(["rm", "-f", "way", "twin"])
    seen = ws.exec(["find", str(home), "-type", "f", "-not", "-path", f"{ws.root}/*"])
    assert (seen.stdout, seen.exit_code) == (b"", 0)
    assert ws.exec(["ls", str(home)]).stdout == b"hosts\n"
    assert results.read_text() == '{"task": "t0", "passed": false}\n'
    assert cached.read_bytes() == before


def test_model_gets_no_network_and_no_place_by_asking(ws: FleetWorkspace, tmp_path: Path) -> None:
    """The policy of a fleet approves every call, and grants no right beyond the sandbox."""
    (tmp_path / "outside").write_text("secret")
    for asked in ({"network": {"enabled": True}}, {"file_system": {"read": [str(tmp_path)]}}):
        call = {
            "cmd": f"cat '{tmp_path}/outside'; cat /proc/net/dev",
            "sandbox_permissions": "with_additional_permissions",
            "additional_permissions": asked,
            "justification": "please",
        }
        answer = ws.call("codex-2026", "exec_command", call)
        assert not answer.success, answer
        assert "secret" not in answer.text
    escalated = {"cmd": "true", "sandbox_permissions": "require_escalated", "justification": "please"}
    assert not ws.call("codex-2026", "exec_command", escalated).success


def test_tree_with_devices_pipes_and_set_user_bits_has_none_of_them(fleet: Fleet, tmp_path: Path) -> None:
    root = tmp_path / "hostile"
    (root / "-rf").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    here = os.open(root, os.O_RDONLY)  # the name of the root can be too long for a socket
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{here}/sock")
    os.close(here)
    if os.geteuid() == 0:
        os.mknod(root / "device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (root / "program").write_text("#!/bin/sh\n")
    (root / "program").chmod(0o6755)
    (root / "-rf" / "$(touch x)\n;").write_text("odd")
    (root / "up").symlink_to("../../../../../../etc")
    with fleet.open(fleet.tree(str(root))) as opened:
        assert opened.exec(["stat", "-c", "%a", "program"]).stdout == b"755\n"
        assert opened.exec(["sh", "-c", "cat -- ./-rf/*"]).stdout == b"odd"
        assert not opened.call("file", "file.read", {"path": "up/hostname"}).success
        names = opened.exec(["ls", "-A"]).stdout.decode().split()
        assert {"-rf", "program", "up"} <= {*names}
        assert not {"pipe", "sock", "device", "x"} & {*names}
