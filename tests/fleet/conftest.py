"""Prepares the tests of fleets: a small tree, and a fleet on this machine."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.fleet import Fleet
from handrail.kernel.fleet.node_directory import left_over, node_home


@pytest.fixture
def tree_root(tmp_path: Path) -> Path:
    """Make a directory with files, a program, links and odd names."""
    root = tmp_path / "a tree"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "src" / "run.sh").chmod(0o755)
    (root / "src" / "deep" / "bytes").write_bytes(bytes(range(256)) * 40)
    (root / "link").symlink_to("src/run.sh")
    (root / "out").symlink_to("/etc/hostname")
    Path(os.fsdecode(bytes(root) + b"/odd \xff\nname")).write_bytes(b"odd")
    return root


@pytest.fixture
def node(tmp_path: Path) -> str:
    """Name the directory of fleets for one test."""
    return str(tmp_path / "node")


@pytest.fixture
def left(node: str) -> Callable[[], list[str]]:
    """Return what fleets have left behind."""
    return lambda: left_over(node_home(node))


@pytest.fixture
def fleet(node: str) -> Iterator[Fleet]:
    with Fleet(hosts=1, directory=node, checkpoint_calls=3) as opened:
        yield opened


def kill_host(fleet: Fleet) -> None:
    """Kill the host that runs now, and wait until it is gone."""
    pid = int(fleet.hosts[0].rpartition("-")[2])
    os.kill(pid, signal.SIGKILL)
