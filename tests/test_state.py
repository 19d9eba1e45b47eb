"""What Handrail keeps about a workspace, outside of it."""

import os
import tempfile
from pathlib import Path

import pytest
from click import UsageError

from handrail import Workspace
from handrail.kernel.state import State, config_home, state_home
from handrail.surfaces.cli.options import open_workspace


def test_the_platform_says_where_if_nobody_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG"):
        monkeypatch.delenv(f"HANDRAIL_{name}_DIR")
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    assert state_home() == str(tmp_path / "state" / "handrail")
    assert config_home() == str(tmp_path / "config" / "handrail")


def test_workspaces_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    first, second = State(str(tmp_path / "a" / "same name")), State(str(tmp_path / "b" / "same name"))
    assert first.path != second.path
    assert os.path.basename(first.path).startswith("same_name-")
    assert os.stat(first.pending).st_mode & 0o077 == 0


def test_where_the_state_cannot_be_kept_another_place_is_used_and_said(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", "/proc/no/state")
    with Workspace(str(root), approve="auto") as workspace:
        (note,) = workspace.notes
        assert note.startswith("state directory /proc/no/state/workspaces/workspace-")
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
        assert workspace.kernel.state.path.startswith(str(elsewhere))


def test_a_directory_of_somebody_else_is_never_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        Workspace(str(root))
    with pytest.raises(UsageError, match=r"cannot open the workspace .*: \[Errno 13\] it belongs to somebody else"):
        open_workspace(str(root))
