"""Works on poor systems: without openat2, /proc, attributes or a state directory, and with names that always change."""

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support.fault_injection import failing, faults
from support.ordinary_user import as_ordinary_user
from support.writer import commit

from handrail import FsBoundary, Workspace
from handrail.kernel.fs import boundary as boundary_module
from handrail.kernel.fs import resolver as resolve
from handrail.kernel.fs.syscalls import rename_to_free_name
from handrail.kernel.host.session_log import SessionLog, shorten
from handrail.kernel.host.state_dir import config_home, locked_directory_of, read_text, state_home, write_text
from handrail.model.faults import Conflict, WriteFailed
from handrail.model.files import MakeDirectory


class Refusing:
    """Replaces the os module: calls with this name fail, for every argument or for arguments that contain a text."""

    def __init__(self, name: str, code: int, about: str = "") -> None:
        self._name, self._code, self._about = name, code, about

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != self._name:
            return real

        def call(*args: Any, **options: Any) -> Any:
            if self._about in str(args[0]):
                raise OSError(self._code, os.strerror(self._code))
            return real(*args, **options)

        return call


@pytest.fixture
def openat2(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of errors that openat2 gives one after another; after that it works as usual."""
    answers: list[int] = []
    real = resolve.openat2

    def answer(*arguments: Any) -> int:
        return -answers.pop(0) if answers else real(*arguments)

    monkeypatch.setattr(resolve, "openat2", answer)
    return answers


def test_boundary_without_openat2_uses_walk(root: Path, openat2: list[int]) -> None:
    openat2.append(errno.ENOSYS)
    assert FsBoundary(root).resolver == "walk"


def test_boundary_outside_linux_uses_walk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert FsBoundary(root).resolver == "walk"


def test_interrupted_openat2_is_retried(root: Path, openat2: list[int]) -> None:
    (root / "file").touch()
    boundary = FsBoundary(root)
    openat2.extend([errno.EAGAIN, errno.EINTR, errno.EAGAIN])
    os.close(boundary.open_file("file")[0])
    assert openat2 == []


def test_openat2_interrupted_at_every_attempt_is_a_conflict(root: Path, openat2: list[int]) -> None:
    (root / "file").touch()
    boundary = FsBoundary(root)
    openat2.extend([errno.EAGAIN] * 1000)
    with pytest.raises(Conflict):
        boundary.open_file("file")


def test_walk_disturbed_at_every_attempt_is_a_conflict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "file").touch()
    (root / "link").symlink_to("sub")
    boundary = FsBoundary(root, resolver="walk")
    for call, path in (("open", "sub/file"), ("readlink", "link/file")):
        with monkeypatch.context() as patch:
            patch.setattr(resolve, "os", Refusing(call, errno.ELOOP))
            with pytest.raises(Conflict):
                boundary.open_file(path)
            with pytest.raises(Conflict):
                boundary.locate(path)


def test_directory_replaced_by_link_at_every_attempt_is_a_conflict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    boundary = FsBoundary(root, resolver="walk")
    monkeypatch.setattr(resolve, "os", Refusing("open", errno.ENOTDIR))
    with pytest.raises(Conflict):
        boundary.open_directory("sub")


def test_file_that_changes_kind_during_open_is_a_conflict(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").touch()
    (root / "sub").mkdir()
    boundary = FsBoundary(root, resolver="walk")
    as_file = boundary.stat("file")
    monkeypatch.setattr(boundary, "_stat", lambda *_, **__: as_file)
    with pytest.raises(Conflict):
        boundary.open_file("sub")


def test_read_and_write_work_without_proc(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "file").write_text("old\n")
    for call in ("open", "readlink"):
        with monkeypatch.context() as patch:
            for module in (boundary_module, resolve):
                patch.setattr(module, "os", Refusing(call, errno.ENOENT, "/proc/self/fd"))
            with Workspace(str(root), approve="auto") as workspace:
                assert workspace.call("file", "file.read", {"path": "sub/file"}).success
                written = workspace.call("file", "file.write", {"path": "sub/file", "content": call})
        assert written.files_affected == ["sub/file"]
        assert (root / "sub" / "file").read_text() == call


def test_write_works_on_file_system_without_attributes(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("old")
    with faults(0, failing(errno.EIO), missing=("listxattr",)):
        assert workspace.call("file", "file.write", {"path": "file", "content": "new"}).success
    with faults(0, failing(errno.EIO), missing=("setxattr",)):
        os.setxattr(root / "file", "user.colour", b"blue")
        assert workspace.call("file", "file.write", {"path": "file", "content": "newer"}).success
    assert (root / "file").read_text() == "newer"


def test_attributes_that_cannot_be_copied_stop_write(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("old")
    os.setxattr(root / "file", "user.colour", b"blue")
    for name in ("listxattr", "setxattr"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("handrail.kernel.fs.metadata.os", Refusing(name, errno.EIO))
            result = workspace.call("file", "file.write", {"path": "file", "content": "new"})
        assert result.error is not None
        assert result.error.code == "write_failed"
    assert (root / "file").read_text() == "old"


def test_directory_made_by_another_process_is_kept_after_failure(workspace: Workspace, root: Path) -> None:
    def make_first(name: str, real: Any, args: Any, options: Any) -> Any:
        if name == "mkdir" and not (root / "theirs").exists():
            (root / "theirs").mkdir()
        elif name == "fsync":
            raise OSError(errno.EIO, "EIO")
        return real(*args, **options)

    with faults(1, make_first, lasting=True), pytest.raises(WriteFailed):
        commit(workspace._services.writer, [MakeDirectory("theirs/ours")], ["theirs/ours"])
    assert os.listdir(root) == ["theirs"]
    assert os.listdir(root / "theirs") == []


def test_rename_to_free_name_never_replaces_file(root: Path) -> None:
    for name in ("one", "two"):
        (root / name).write_text(name)
    handle = os.open(root, os.O_RDONLY)
    with pytest.raises(FileExistsError):
        rename_to_free_name("one", "two", handle)
    rename_to_free_name("one", "three", handle)
    os.close(handle)
    assert {path.name: path.read_text() for path in root.iterdir()} == {"two": "two", "three": "one"}


def test_deleted_root_gives_warning(workspace: Workspace, root: Path) -> None:
    root.rmdir()
    result = workspace.call("file", "file.list", {})
    assert result.warnings == ["the workspace directory was replaced; this session still uses the original one"]


# ── state and log ──


def test_state_and_config_directories_follow_variables_or_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, home in (("HANDRAIL_STATE_DIR", state_home), ("HANDRAIL_CONFIG_DIR", config_home)):
        monkeypatch.setenv(variable, "/named/here")
        assert home() == "/named/here"
        monkeypatch.delenv(variable)
        assert os.path.basename(home()) == "handrail"


def _open_with_a_strangers_state(root: str) -> tuple[list[str], bool]:
    os.environ["HANDRAIL_STATE_DIR"] = "/proc/handrail"
    tempfile.tempdir = os.path.dirname(root) + "/state"
    with Workspace(root, approve="auto") as workspace:
        return workspace.warnings, workspace.call("file", "file.write", {"path": "new", "content": "x"}).success


def test_unusable_state_directory_is_replaced_with_warning() -> None:
    notes, written = as_ordinary_user(_open_with_a_strangers_state)
    assert written
    assert len(notes) == 1
    assert notes[0].startswith("the state directory /proc/handrail/")


@pytest.mark.root
def test_state_directory_of_another_user_is_not_used(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Workspace(str(root)) as workspace:
        os.chown(workspace._services.state.path, 1234, 1234)
    with Workspace(str(root)) as workspace:
        assert [note.rpartition(": ")[2] for note in workspace.warnings] == ["it belongs to another user"]


def test_own_file_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    path = str(tmp_path / "config" / "rules.toml")
    assert read_text(path) == ""
    with locked_directory_of(path):
        write_text(path, "old")
    for at in (1, 2):
        with locked_directory_of(path), faults(at, failing(errno.EIO)), pytest.raises(OSError, match="Input/output"):
            write_text(path, "new")
        assert read_text(path) == "old"
        assert os.listdir(tmp_path / "config") == ["rules.toml"]
    with locked_directory_of(path):
        write_text(path, "new")
    assert read_text(path) == "new"


class Answer:
    def to_dict(self) -> dict[str, Any]:
        return {"output": "x" * 50, "nested": [{"token": 1}]}


def test_session_log_has_requests_responses_and_failures(tmp_path: Path) -> None:
    path = tmp_path / "log" / "session.jsonl"
    log = SessionLog(str(path), level="debug", chars=20, session="s")
    number = log.request("file", "file.read", {"path": "a"}, "7")
    log.response(number, Answer())
    try:
        raise KeyError("bug")
    except KeyError as bug:
        log.failure(number, "file.read", bug)
    log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["level"], line["event"], line["call"]) for line in lines] == [
        ("INFO", "request", 1),
        ("DEBUG", "response", 1),
        ("ERROR", "bug", 1),
    ]
    assert lines[0]["id"] == "7"
    assert lines[1]["result"]["output"] == "x" * 20 + "… (50 characters)"


def test_unwritable_session_log_does_not_stop_calls(tmp_path: Path) -> None:
    log = SessionLog("/dev/full", level="info", chars=20, session="s")
    assert [log.request("file", "file.read", {}, None) for _ in range(3)] == [1, 2, 3]
    log.failure(1, "file.read", KeyError("bug"))
    log.close()


def test_secrets_are_hidden_in_session_log() -> None:
    given = {"content": "api_key = abcdef123456", "list": ["ghp_" + "a" * 36, 7, None], "plain": "hello"}
    assert shorten(given, 100) == {"content": "api_key = [hidden]", "list": ["[hidden]", 7, None], "plain": "hello"}
