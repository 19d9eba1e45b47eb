"""Tests the state directory, which Handrail keeps outside the workspace."""

import os
import tempfile
from pathlib import Path

import pytest
from click import UsageError

from handrail import Workspace
from handrail.kernel.host.state_dir import State, config_home, state_home
from handrail.surfaces.cli.light.open_workspace import open_workspace


def test_state_home_without_setting_follows_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CONFIG"):
        monkeypatch.delenv(f"HANDRAIL_{name}_DIR")
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    assert state_home() == str(tmp_path / "state" / "handrail")
    assert config_home() == str(tmp_path / "config" / "handrail")


def test_state_same_root_names_get_separate_directories(tmp_path: Path) -> None:
    first, second = State(str(tmp_path / "a" / "same name")), State(str(tmp_path / "b" / "same name"))
    assert first.path != second.path
    assert os.path.basename(first.path).startswith("same_name-")
    assert os.stat(first.pending).st_mode & 0o077 == 0


def test_state_unusable_directory_falls_back_with_note(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", "/proc/no/state")
    with Workspace(str(root), approve="auto") as workspace:
        (note,) = workspace.warnings
        assert note.startswith("the state directory /proc/no/state/workspaces/workspace-")
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
        assert workspace._services.state.path.startswith(str(elsewhere))


def test_state_path_is_a_file_falls_back_and_keeps_file(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("somebody's")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    with Workspace(str(root), approve="auto") as workspace:
        (note,) = workspace.warnings
        assert note.startswith(f"the state directory {tmp_path}/state/workspaces/workspace-")
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
    assert (tmp_path / "state").read_text() == "somebody's"


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the state directory unusable; return the directory for temporary files."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", "/proc/no/state")
    return elsewhere


def test_state_fallback_gives_warning_with_each_change(root: Path, nowhere: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        made = workspace.call("file", "file.write", {"path": "a", "content": "x"})
        ran = workspace.call("codex", "shell", {"command": "echo y > a"})
        read = workspace.call("file", "file.read", {"path": "a"})
        for result in (made, ran):
            assert result.success
            (warning,) = result.warnings
            assert warning.startswith(f"the data for undo is stored in {nowhere}/handrail-{os.getuid()}/workspace-")
            assert "because the state directory /proc/no/state/workspaces/workspace-" in warning
        assert not read.warnings
        assert workspace.history().undo(since=1).done
    assert os.listdir(root) == []


def test_state_fallback_with_required_journal_refuses_changes(root: Path, nowhere: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off", journal="required") as workspace:
        for dialect, tool, params in (
            ("file", "file.write", {"path": "a", "content": "x"}),
            ("copilot", "create_directory", {"path": "d"}),
            ("codex", "shell", {"command": "touch b"}),
        ):
            result = workspace.call(dialect, tool, params)
            assert result.error is not None
            assert "cannot write the required journal: the state directory /proc/no" in result.error.message
    assert os.listdir(root) == []
    assert list(nowhere.rglob("journal.jsonl")) == []


@pytest.mark.parametrize("how", ["writable", "link", "file"])
def test_state_fallback_unsafe_directory_is_refused(root: Path, nowhere: Path, how: str) -> None:
    home = nowhere / f"handrail-{os.getuid()}"
    if how == "writable":
        home.mkdir()
        home.chmod(0o770)
    elif how == "link":
        (nowhere / "theirs").mkdir()
        home.symlink_to("theirs")
    else:
        home.write_text("")
    with pytest.raises(PermissionError, match="belongs to another user, or other users can write"):
        Workspace(str(root))
    assert sorted(os.listdir(nowhere)) == sorted({"theirs", home.name} if how == "link" else {home.name})


def test_state_fallback_directory_is_private(root: Path, nowhere: Path) -> None:
    mask = os.umask(0o002)
    try:
        with Workspace(str(root)):
            (home,) = nowhere.iterdir()
    finally:
        os.umask(mask)
    assert home.stat().st_mode & 0o077 == 0


def test_state_inside_workspace_is_protected_from_tools(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(root / "state"))
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
        journal = os.path.relpath(workspace._services.journal.path, root)
        for tool, params in (
            ("file.read", {"path": journal}),
            ("file.write", {"path": journal, "content": ""}),
            ("file.delete", {"path": journal}),
        ):
            result = workspace.call("file", tool, params)
            assert result.error is not None
            assert result.error.code == "protected_file"
        assert workspace.call("codex", "shell", {"command": "touch b"}).files_affected == ["b"]
        listed = workspace.call("file", "file.list", {})
        assert "state" not in str(listed.output)


def test_state_directory_of_another_user_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        Workspace(str(root))
    with pytest.raises(UsageError, match=r"cannot open the workspace .*: \[Errno 13\] it belongs to another user"):
        open_workspace(str(root))


def test_state_and_log_files_are_private(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "new" / "state"
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(home))
    mask = os.umask(0o002)
    try:
        with Workspace(str(root), approve="auto", sandbox="off", limits={"journal_days": 0}) as workspace:
            for content in ("one", "two"):
                assert workspace.call("file", "file.write", {"path": "a", "content": content}).success
            assert workspace.call("codex", "shell", {"command": "echo y > b"}).success
        with Workspace(str(root), log=str(tmp_path / "logs" / "of" / "mine.jsonl")) as workspace:
            assert workspace.call("file", "file.read", {"path": "a"}).success
    finally:
        os.umask(mask)
    found = [tmp_path / "new", *(tmp_path / "new").rglob("*"), tmp_path / "logs", *(tmp_path / "logs").rglob("*")]
    assert {path.name for path in found} >= {"state", "journal.jsonl", "sessions", "pending", "blobs", "mine.jsonl"}
    assert [path for path in found if path.stat().st_mode & 0o077] == []
