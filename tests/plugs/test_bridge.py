"""Tests what all plugs share: programs and bytes inside and outside the root of a workspace."""

from pathlib import Path

import pytest

from handrail.fleet.plugs.bridge import FLEETS, Bridge, returncode

pytestmark = pytest.mark.sandbox


def test_bridge_reads_and_writes_inside_and_in_private_tmp(bridge: Bridge) -> None:
    name = "/tmp/handrail-plug/deep/x"
    for path in ("new/b.bin", name):
        bridge.write(path, b"\xff\x00")
        assert bridge.read(path) == b"\xff\x00"
    assert not Path(name).exists()


def test_bridge_missing_file_and_directory_raise_as_python_does(bridge: Bridge) -> None:
    for path in ("missing", "/tmp/missing"):
        with pytest.raises(FileNotFoundError):
            bridge.read(path)
    for path in (".", "/tmp"):
        with pytest.raises(IsADirectoryError):
            bridge.read(path)
        with pytest.raises(IsADirectoryError):
            bridge.write(path, b"")
    with pytest.raises(PermissionError):
        bridge.write("/etc/owned", b"")


def test_bridge_runs_programs_with_input_environment_directory_and_limit(bridge: Bridge) -> None:
    assert bridge.run(["cat"], stdin=b"in").stdout == b"in"
    assert bridge.run(["sh", "-c", "echo $X"], env={"X": "y"}).stdout == b"y\n"
    assert bridge.run(["pwd"], cwd="/tmp").stdout == b"/tmp\n"
    assert returncode(bridge.run(["no such program"])) == 127
    assert returncode(bridge.run(["sh", "-c", "kill -9 $$"])) == 137
    with pytest.raises(TimeoutError):
        bridge.run(["sleep", "9"], timeout=0.3)
    with pytest.raises(PermissionError, match="no user"):
        bridge.run(["true"], user="nobody-here")


def test_bridge_moves_directories_inside_and_outside(bridge: Bridge, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "in").mkdir(parents=True)
    (source / "in" / "x").write_text("x")
    for number, place in enumerate(("here", "/tmp/there")):
        bridge.upload_tree(str(source), place)
        bridge.download_tree(place, str(tmp_path / str(number)))
        assert (tmp_path / str(number) / "in" / "x").read_text() == "x"
    assert not bridge.run(["test", "-e", ".handrail-stage"]).ok


def test_bridge_workspaces_of_one_tree_share_fleet_and_live_apart(bridge: Bridge, tree: str) -> None:
    other = Bridge.open(tree, {"hosts": 1})
    bridge.write("own", b"1")
    assert not other.run(["test", "-e", "own"]).ok
    assert len(FLEETS._fleets) == 1
    other.close()
