"""Checks that the changes of commands are recorded, within limits that a warning names."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import ToolResult, Workspace
from handrail.kernel.fs.small_files import open_file
from handrail.kernel.journal import many_contents
from handrail.kernel.journal.blobs import fingerprint
from handrail.kernel.journal.journal import ChangedPath, JournalEntry, KeptNode


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with open_workspace(root) as opened:
        yield opened


def open_workspace(root: Path, **flags: Any) -> Workspace:
    return Workspace(str(root), approve="auto", sandbox="off", **flags)


def shell(workspace: Workspace, command: str) -> ToolResult:
    result = workspace.call("codex", "shell", {"command": command})
    assert result.success, result
    return result


def entries(workspace: Workspace) -> list[JournalEntry]:
    return [each for each in workspace._services.journal.backwards() if isinstance(each, JournalEntry)][::-1]


def file(text: str, mode: int = 0o644) -> KeptNode:
    return KeptNode("file", fingerprint(text.encode()), mode)


def test_command_is_recorded_with_all_its_changes(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("one\n")
    result = shell(workspace, "echo two >> a; mkdir d; ln -s ../a d/l; export api_key=abcdefgh")
    assert result.files_affected == ["a", "d", "d/l"]
    (entry,) = entries(workspace)
    assert (entry.origin.kind, entry.origin.tool, entry.origin.by) == ("command", "shell", "policy auto")
    assert entry.origin.about == "echo two >> a; mkdir d; ln -s ../a d/l; export api_key=[hidden]"
    assert entry.files == (
        ChangedPath("a", file("one\n"), file("one\ntwo\n"), (1, 0)),
        ChangedPath("d", None, KeptNode("directory", "", 0o755)),
        ChangedPath("d/l", None, KeptNode("link", "../a", 0o777)),
    )
    assert shell(workspace, "cat a").files_affected == []
    assert len(entries(workspace)) == 1


def test_changes_made_before_command_are_not_recorded(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("a")
    shell(workspace, "true")
    (root / "a").write_text("mine")
    (root / "b").write_text("mine too")
    shell(workspace, "true")
    assert entries(workspace) == []
    shell(workspace, "printf theirs > a")
    assert entries(workspace)[0].files == (ChangedPath("a", file("mine"), file("theirs"), (1, 1)),)


def test_failed_command_is_recorded_with_its_changes(workspace: Workspace, root: Path) -> None:
    result = workspace.call("gemini", "run_shell_command", {"command": "touch made; exit 3"})
    assert result.files_affected == ["made"]
    assert [each.files[0].path for each in entries(workspace)] == ["made"]


def test_terminal_changes_between_calls_are_recorded_with_next_call(workspace: Workspace, root: Path) -> None:
    start = {"cmd": "stty -echo; echo up; read line; echo x > early; echo made; read line; exit", "session_id": "t"}
    assert workspace.call("codex", "exec_command", start).success
    (root / "meanwhile").write_text("as if the program had done it")
    assert workspace.call("codex", "write_stdin", {"session_id": "t", "chars": "go\n"}).success
    assert {file.path for each in entries(workspace) for file in each.files} == {"early", "meanwhile"}


def test_commit_during_command_is_recorded_once(workspace: Workspace, root: Path) -> None:
    (root / "mine").write_text("old")
    (root / "both").write_text("old")
    shell(workspace, "true")
    other = workspace.session().tools("file")
    running = threading.Thread(
        target=shell, args=(workspace, "while [ ! -e go ]; do sleep 0.01; done; echo > did; rm both")
    )
    running.start()
    for name in ("mine", "both"):
        assert other.call("file.write", {"path": name, "content": "new"}).success
    (root / "go").touch()
    running.join()
    touched = [(file.path, file.before) for each in entries(workspace) for file in each.files]
    assert touched == [
        ("mine", file("old")),
        ("both", file("old")),
        ("both", file("new")),
        ("did", None),
        ("go", None),
    ]


def test_contents_beyond_limits_are_not_kept_and_warned_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.kernel.journal.scanner._TICK_NS", 0)  # or files that are so new would be read twice
    for name in "abcd":
        (root / name).write_text(name * 10)
        os.utime(root / name, (ord(name), ord(name)))
    (root / "large").write_text("x" * 1000)
    with open_workspace(root, limits={"scan_kept_files": 2, "scan_file_bytes": 100}) as workspace:
        result = shell(workspace, "echo > a; echo > d; echo > large")
        assert result.warnings[0].startswith("undo cannot restore what commands change in large, b, a: too many files")
        assert result.warnings[1:] == [
            "more than 2 files: changes by the command to further files were not recorded",
            "the command changed 1 files whose old contents were not recorded: a",
        ]
        (entry,) = entries(workspace)
        assert entry.files == (
            ChangedPath("a", KeptNode("file", "", 0o644), file("\n")),
            ChangedPath("d", file("d" * 10), file("\n"), (1, 1)),
        )
        assert entry.note == "not kept: the former contents of 1 files"
        plan = workspace.history().undo()
        assert [(each.path, each.why) for each in plan.conflicts] == [("a", "not_kept")]


def test_large_file_changed_by_command_is_named(root: Path) -> None:
    (root / "large").write_text("x" * 1000)
    with open_workspace(root, limits={"scan_file_bytes": 100}) as workspace:
        result = shell(workspace, "printf y >> large")
        assert result.warnings[1:] == ["the command changed 1 files whose old contents were not recorded: large"]
        lost = KeptNode("file", "", 0o644)
        assert entries(workspace)[0].files == (ChangedPath("large", lost, lost),)


def test_more_files_than_scan_limit_give_warning(root: Path) -> None:
    for n in range(5):
        (root / f"d{n}").mkdir()
        (root / f"d{n}" / "file").touch()
    with open_workspace(root, limits={"scan_files": 3}) as workspace:
        assert shell(workspace, "true").warnings == [
            "more than 3 files: changes by the command to further files were not recorded"
        ]


def test_kept_contents_are_known_to_next_session(root: Path) -> None:
    (root / "a").write_text("a")
    with open_workspace(root) as workspace:
        shell(workspace, "true")
        index = Path(workspace._services.state.path, "kept.json")
    with open_workspace(root, limits={"scan_kept_files": 1}) as workspace:
        (root / "new").write_text("new")
        shell(workspace, "true")
        assert shell(workspace, "rm a").warnings == []
        shell(workspace, "rm new")
        assert [each.files[0].before for each in entries(workspace)] == [file("a"), file("new")]
    for damage in (b"", b"\xff\xfe", index.read_bytes()[:-5] + b"12345"):
        index.write_bytes(damage)
        (root / "b").write_text("b")
        with open_workspace(root) as workspace:
            assert shell(workspace, "rm b").warnings == []
            assert entries(workspace)[-1].files[0].before == file("b")


def test_pruned_content_counts_as_not_kept(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("a")
    shell(workspace, "true")
    workspace._services.journal.blobs.drop([fingerprint(b"a")])
    assert shell(workspace, "rm a").warnings == ["the command changed 1 files whose old contents were not recorded: a"]


def test_unwritable_blobs_do_not_stop_command(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("a")
    Path(workspace._services.state.path, "blobs").write_text("in the way")
    result = shell(workspace, "echo done > b")
    assert result.warnings == ["this change was not recorded and cannot be undone: Not a directory"]
    assert (root / "b").exists()


def test_unwritable_journal_after_command_gives_warning(workspace: Workspace, root: Path) -> None:
    shell(workspace, "true")
    os.mkdir(f"{workspace._services.state.path}/journal.jsonl")
    assert shell(workspace, "echo done > b").warnings == [
        "this change was not recorded and cannot be undone: Is a directory"
    ]


def test_unreadable_file_is_recorded_without_content(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("a")
    shell(workspace, "true")

    def refuse(*_: Any) -> int:
        raise PermissionError(13, "not to be read")

    monkeypatch.setattr("handrail.kernel.journal.many_contents.open_file", refuse)
    shell(workspace, "echo new > a")
    assert entries(workspace)[0].files == (ChangedPath("a", file("a"), KeptNode("file", "", 0o644)),)


def test_file_that_changes_during_read_is_not_kept(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("a")
    real = open_file

    def change_first(dir_fd: int, path: str, *flags: int) -> int:
        (root / path).write_text("longer than it was when it was looked at")
        return real(dir_fd, path, *flags)

    def exchange_first(dir_fd: int, path: str, *flags: int) -> int:
        (root / "other").write_text("b")
        (root / "other").rename(root / path)
        return real(dir_fd, path, *flags)

    for act in (change_first, exchange_first):
        monkeypatch.setattr(many_contents, "open_file", act)
        shell(workspace, "true")
        monkeypatch.undo()
        assert "a" not in workspace._services.command_changes._kept
