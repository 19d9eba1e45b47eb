"""What Handrail keeps about a workspace, outside of it."""

import os
import tempfile
from pathlib import Path

import pytest
from click import UsageError

from handrail import Workspace
from handrail.kernel.host.state_dir import State, config_home, state_home
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
        (note,) = workspace.warnings
        assert note.startswith("the state directory /proc/no/state/workspaces/workspace-")
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
        assert workspace._services.state.path.startswith(str(elsewhere))


def test_a_file_where_the_state_should_be_is_said_and_left(
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
    """The state's own place cannot be used; returns the directory for temporary files."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", "/proc/no/state")
    return elsewhere


def test_a_change_that_is_recorded_elsewhere_says_so_in_its_answer(root: Path, nowhere: Path) -> None:
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


def test_where_the_journal_is_required_nothing_is_done_that_is_recorded_elsewhere(root: Path, nowhere: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off", journal="required") as workspace:
        for dialect, tool, params in (
            ("file", "file.write", {"path": "a", "content": "x"}),
            ("copilot", "create_directory", {"path": "d"}),
            ("codex", "shell", {"command": "touch b"}),
        ):
            result = workspace.call(dialect, tool, params)
            assert result.error is not None
            assert "the journal, which is required: the state directory /proc/no" in result.error.message
    assert os.listdir(root) == []
    assert list(nowhere.rglob("journal.jsonl")) == []


@pytest.mark.parametrize("how", ["writable", "link", "file"])
def test_a_place_elsewhere_that_others_could_change_is_refused(root: Path, nowhere: Path, how: str) -> None:
    home = nowhere / f"handrail-{os.getuid()}"
    if how == "writable":
        home.mkdir()
        home.chmod(0o770)
    elif how == "link":
        (nowhere / "theirs").mkdir()
        home.symlink_to("theirs")
    else:
        home.write_text("")
    with pytest.raises(PermissionError, match="belongs to somebody else, or others can write"):
        Workspace(str(root))
    assert sorted(os.listdir(nowhere)) == sorted({"theirs", home.name} if how == "link" else {home.name})


def test_a_place_elsewhere_is_for_us_alone(root: Path, nowhere: Path) -> None:
    mask = os.umask(0o002)
    try:
        with Workspace(str(root)):
            (home,) = nowhere.iterdir()
    finally:
        os.umask(mask)
    assert home.stat().st_mode & 0o077 == 0


def test_a_state_inside_the_workspace_is_out_of_the_reach_of_tools(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_directory_of_somebody_else_is_never_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        Workspace(str(root))
    with pytest.raises(UsageError, match=r"cannot open the workspace .*: \[Errno 13\] it belongs to somebody else"):
        open_workspace(str(root))


def test_nobody_else_can_look_into_what_is_kept(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
