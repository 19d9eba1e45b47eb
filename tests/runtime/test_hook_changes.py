"""Tests what happens to files that a hook, such as a formatter, changes after a call."""

from pathlib import Path
from typing import Any

import pytest
from support.hooks import HookWriter, table

from handrail import Workspace


@pytest.fixture
def root(root: Path) -> Path:
    (root / "a.txt").write_text("one\n")
    return root


_FORMATTER = """
import json, sys, pathlib
given = json.load(sys.stdin)
path = pathlib.Path(given["cwd"], given["tool_input"]["path"])
path.write_text(path.read_text().upper())
"""


def formatter(tmp_path: Path, hook: HookWriter) -> dict[str, Any]:
    script = tmp_path / "formatter.py"
    script.write_text(_FORMATTER)
    return table("PostToolUse", hook(f"exec python3 {script}", "format"), matcher="file.write|file.patch")


def test_formatter_belongs_to_the_entry_of_the_edit(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    with Workspace(root, approve="auto", hooks=formatter(tmp_path, hook)) as workspace:
        tools = workspace.tools("file")
        result = tools.call("file.write", {"path": "a.txt", "content": "two\n"})
        assert (root / "a.txt").read_text() == "TWO\n"
        assert result.warnings == ["a hook of the user reformatted or changed a.txt after this call; read it again"]
        entries = workspace.history().entries()
        assert [entry.files for entry in entries] == [["a.txt"]]
        assert entries[0].entry.files[0].lines == (1, 1)
        assert workspace.history().undo().done
        assert (root / "a.txt").read_text() == "one\n"
        assert workspace.history().redo().done
        assert (root / "a.txt").read_text() == "TWO\n"


def test_change_of_another_process_is_not_a_hooks(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    hooks = formatter(tmp_path, hook)
    hooks["PostToolUse"][0]["matcher"] = "file.read"
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        tools = workspace.tools("file")
        result = tools.call("file.write", {"path": "a.txt", "content": "two\n"})
        assert (result.success, result.warnings) == (True, [])
        (root / "a.txt").write_text("mine\n")
        stale = tools.call("file.write", {"path": "a.txt", "content": "three\n"})
        assert stale.error is not None
        assert stale.error.code == "stale_file"


def test_edit_after_a_formatter_is_not_stale(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    with Workspace(root, approve="auto", hooks=formatter(tmp_path, hook)) as workspace:
        tools = workspace.tools("file")
        assert tools.call("file.read", {"path": "a.txt"}).success
        assert tools.call("file.write", {"path": "a.txt", "content": "two\n"}).success
        assert tools.call("file.write", {"path": "a.txt", "content": "three\n"}).success
        assert [entry.n for entry in workspace.history().entries()] == [3, 1]
        assert workspace.history().undo(3).done
        assert (root / "a.txt").read_text() == "TWO\n"
        assert workspace.history().undo(1).done
        assert (root / "a.txt").read_text() == "one\n"


def test_formatter_of_a_new_file_is_undone_with_it(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    with Workspace(root, approve="auto", hooks=formatter(tmp_path, hook)) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "new.txt", "content": "x\n"}).success
        assert workspace.history().undo().done
        assert not (root / "new.txt").exists()
        assert workspace.history().restore("new.txt", 1).done
        assert (root / "new.txt").read_text() == "X\n"


def test_hook_that_deletes_is_told_and_undone(root: Path, hook: HookWriter) -> None:
    hooks = table("PostToolUse", hook(f"rm {root}/a.txt"), matcher="file.write")
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "a.txt", "content": "two\n"})
        assert "changed a.txt after this call" in result.warnings[0]
        (entry,) = workspace.history().entries()
        assert entry.entry.files[0].after is None
        assert workspace.history().undo().done
        assert (root / "a.txt").read_text() == "one\n"


def test_hook_that_makes_a_link_is_undone(root: Path, hook: HookWriter) -> None:
    hooks = table("PostToolUse", hook(f"ln -sf other {root}/a.txt"), matcher="file.write")
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "a.txt", "content": "two\n"}).warnings
        assert workspace.history().undo().done
        assert (root / "a.txt").read_text() == "one\n"
        assert not (root / "a.txt").is_symlink()


def test_hook_that_makes_a_file_too_large_is_a_conflict(root: Path, hook: HookWriter) -> None:
    hooks = table("PostToolUse", hook(f"head -c 5000 /dev/zero > {root}/a.txt"), matcher="file.write")
    with Workspace(root, approve="auto", hooks=hooks, limits={"edit_bytes": 1000}) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "a.txt", "content": "two\n"})
        assert result.success
        assert result.warnings
        assert workspace.history().entries()[0].undoable is False
        assert [each.path for each in workspace.history().undo().conflicts] == ["a.txt"]


def test_formatter_without_a_journal_still_tells_the_model(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    with Workspace(root, approve="auto", journal="off", hooks=formatter(tmp_path, hook)) as workspace:
        tools = workspace.tools("file")
        assert tools.call("file.write", {"path": "a.txt", "content": "two\n"}).warnings
        assert tools.call("file.write", {"path": "a.txt", "content": "three\n"}).success


def test_formatter_of_one_of_two_files_completes_their_entry(root: Path, hook: HookWriter) -> None:
    hooks = table("PostToolUse", hook(f"echo B > {root}/b.txt"), matcher="apply_patch")
    text = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** Add File: c.txt\n+c\n*** End Patch\n"
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        assert workspace.tools("codex-2026").call("apply_patch", {"input": text}).success
        (entry,) = workspace.history().entries()
        assert entry.files == ["b.txt", "c.txt"]
        assert workspace.history().undo().done
    assert [path.name for path in root.iterdir()] == ["a.txt"]
