"""Tests that a session refuses to edit a file that another process changed since the session last saw it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import await_word

from handrail import Workspace
from handrail.model.files import File, Version
from handrail.runtime.stale_files import SeenFiles

READS: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("file.read", {"path": "file"}),
    "gemini": ("read_file", {"absolute_path": "{root}/file"}),
    "context": ("read_file", {"path": "file"}),
    "copilot": ("read_file", {"path": "file"}),
    "codex": ("read_file", {"path": "file"}),
    "claude-code": ("Read", {"file_path": "{root}/file"}),
}
BY = "by another process"
DIFF = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
PATCH = "--- a/file\n+++ b/file\n@@ -1 +1 @@\n-one\n+1\n"
EDITS: list[tuple[str, str, dict[str, Any]]] = [
    ("file", "file.patch", {"path": "file", "patches": [{"find": "one", "replace": "1"}]}),
    ("file", "file.write", {"path": "file", "content": "mine"}),
    ("file", "file.delete", {"path": "file"}),
    ("gemini", "replace", {"file_path": "{root}/file", "old_string": "one", "new_string": "1"}),
    ("gemini", "write_file", {"file_path": "{root}/file", "content": "mine"}),
    ("context", "replace_in_file", {"path": "file", "find": "one", "replace": "1"}),
    ("context", "edit_lines", {"path": "file", "operation": "delete", "start_line": 1, "end_line": 1}),
    ("context", "update_file", {"path": "file", "content": "mine"}),
    ("context", "append_file", {"path": "file", "content": "more"}),
    ("context", "delete_file", {"path": "file"}),
    ("copilot", "replace_string_in_file", {"path": "file", "old_string": "one", "new_string": "1"}),
    ("codex", "apply_patch_freeform", {"patch": PATCH}),
    ("claude-code", "Edit", {"file_path": "{root}/file", "old_string": "one", "new_string": "1"}),
    ("claude-code", "Write", {"file_path": "{root}/file", "content": "mine"}),
]


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace(str(root), approve="auto", sandbox="off") as opened:
        yield opened


def call(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]) -> str:
    filled = {
        key: value.format(root=workspace.root) if isinstance(value, str) else value for key, value in params.items()
    }
    result = workspace.call(dialect, tool, filled)
    return result.error.code if result.error else "ok"


def read(workspace: Workspace, dialect: str = "file") -> str:
    return call(workspace, dialect, *READS[dialect])


def patch(workspace: Workspace, find: str, replace: str) -> str:
    return call(workspace, "file", "file.patch", {"path": "file", "patches": [{"find": find, "replace": replace}]})


@pytest.mark.parametrize(("dialect", "tool", "params"), EDITS)
def test_stale_file_edit_refused_until_read_again(
    workspace: Workspace, root: Path, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    (root / "file").write_text("one\ntwo\n")
    assert read(workspace, dialect) == "ok"
    (root / "file").write_text("one\n2\n")
    assert call(workspace, dialect, tool, params) == "stale_file"
    assert call(workspace, dialect, tool, params) == "stale_file"
    assert (root / "file").read_text() == "one\n2\n"
    assert read(workspace, dialect) == "ok"
    assert call(workspace, dialect, tool, params) == "ok"


def test_stale_file_error_shows_change_and_suggestion(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\ntwo\n")
    read(workspace)
    (root / "file").write_text("one\n2\n")
    error = workspace.call("file", "file.write", {"path": "file", "content": "x"}).error
    assert error is not None
    assert error.message == (
        f"'file' was changed {BY} since this session last read or wrote it; nothing was written:\n{DIFF}"
    )
    assert error.suggestion == "Read the file again, then edit its current contents"
    (root / "file").unlink()
    deleted = workspace.call("file", "file.write", {"path": "file", "content": "x"}).error
    assert deleted is not None
    assert deleted.message == f"'file' was deleted {BY} since this session last read or wrote it; nothing was written"
    assert read(workspace) == "file_not_found"
    assert call(workspace, "file", "file.write", {"path": "file", "content": "x"}) == "ok"


def test_stale_file_error_shortens_long_change(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("".join(f"{n}\n" for n in range(500)))
    read(workspace)
    (root / "file").write_text("".join(f"x{n}\n" for n in range(500)))
    error = workspace.call("file", "file.delete", {"path": "file"}).error
    assert error is not None
    assert len(error.message) < 1000
    assert error.message.endswith("\n…")


def test_stale_file_edit_without_earlier_read_succeeds(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\n")
    assert patch(workspace, "one", "two") == "ok"


def test_stale_file_own_edits_seen_other_sessions_not(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("0\n")
    other = workspace.session()
    assert read(workspace) == "ok"
    assert [patch(workspace, str(n), str(n + 1)) for n in range(3)] == ["ok"] * 3
    edit = {"path": "file", "patches": [{"find": "3", "replace": "4"}]}
    assert other.tools("file").call("file.patch", edit).success
    assert patch(workspace, "4", "5") == "stale_file"
    other.close()


def test_stale_file_same_contents_is_not_stale(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\n")
    read(workspace)
    os.utime(root / "file", (1, 1))
    os.chmod(root / "file", 0o600)
    assert patch(workspace, "one", "two") == "ok"
    (root / "file").write_text("three\n")
    (root / "file").write_text("two\n")
    assert patch(workspace, "two", "three") == "ok"


def test_stale_file_partly_read_then_changed_is_stale(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\ntwo\n")
    assert workspace.call("file", "file.read", {"path": "file", "limit": 1}).success
    assert patch(workspace, "one", "1") == "ok"
    assert workspace.call("file", "file.read", {"path": "file", "limit": 1}).success
    (root / "file").write_text("1\ntwo\nthree\n")
    error = workspace.call("file", "file.delete", {"path": "file"}).error
    assert error is not None
    assert error.message == f"'file' was changed {BY} since this session last read or wrote it; nothing was written"


def test_stale_file_read_through_link_is_known_by_target(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\n")
    (root / "link").symlink_to("file")
    assert workspace.call("file", "file.read", {"path": "link"}).success
    os.replace(_new(root, "two\n"), root / "file")
    assert patch(workspace, "two", "2") == "stale_file"


def _new(root: Path, text: str) -> Path:
    (root / "new").write_text(text)
    return root / "new"


def test_stale_file_changed_by_own_command_is_not_stale(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\n")
    read(workspace)
    assert workspace.call("codex", "shell", {"command": "echo two >> file"}).success
    assert patch(workspace, "two", "2") == "ok"
    assert workspace.call("codex", "shell", {"command": "rm file"}).success
    assert call(workspace, "file", "file.write", {"path": "file", "content": "new"}) == "ok"


def test_stale_file_changed_before_own_command_stays_stale(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("one\n")
    read(workspace)
    (root / "file").write_text("theirs\n")
    assert workspace.call("codex", "shell", {"command": "true"}).success
    assert call(workspace, "file", "file.write", {"path": "file", "content": "mine"}) == "stale_file"


def test_stale_file_parallel_calls_of_one_session_never_stale(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("".join(f"<{n}:0>\n" for n in range(6)))
    answers: list[str] = []

    def work(number: int) -> None:
        for turn in range(15):
            answers.append(patch(workspace, f"<{number}:{turn}>", f"<{number}:{turn + 1}>"))
            answers.append(read(workspace))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) == {"ok"}


def test_seen_files_memory_is_bounded() -> None:
    seen = SeenFiles(room=10)
    version = Version(1, 1, 1, 1, 1)
    for n in range(5000):
        seen.note(f"f{n}", version, b"12345")
    assert len(seen._files) == 4096
    assert sum(len(each.data or b"") for each in seen._files.values()) == 10
    changed = File("f", b"other", version._replace(ino=2), 0o644)
    assert seen.changed("f4999", changed) == seen.changed("f4000", changed) == "changed"
    assert seen.changed("f0", changed) is None


def test_stale_file_changed_by_background_process_is_stale(workspace: Workspace, root: Path) -> None:
    """Change the file in a background process: the session cannot know who changed it."""
    (root / "file").write_text("one\ntwo\n")
    for name in ("go", "went"):
        os.mkfifo(root / name)
    assert read(workspace) == "ok"
    command = "(cat go; echo late >> file; echo done > went) > /dev/null 2>&1 &"
    assert workspace.call("gemini", "run_shell_command", {"command": command}).success
    (root / "go").write_text("")
    await_word(root / "went")
    assert patch(workspace, "one", "1") == "stale_file"
    assert read(workspace) == "ok"
    assert patch(workspace, "one", "1") == "ok"
    assert (root / "file").read_text() == "1\ntwo\nlate\n"


@pytest.mark.parametrize("dialect", ["codex-2026", "openai"])
def test_stale_file_printed_by_a_command_counts_as_read(workspace: Workspace, root: Path, dialect: str) -> None:
    (root / "file").write_text("one\ntwo\n")
    tools, run = workspace.tools(dialect), {"codex-2026": "exec_command", "openai": "shell"}[dialect]

    def patch(old: str, new: str) -> Any:
        diff = f"@@\n-{old}\n+{new}\n"
        whole = {"input": f"*** Begin Patch\n*** Update File: file\n{diff}*** End Patch\n"}
        section = {"type": "update_file", "path": "file", "diff": diff}
        return tools.call("apply_patch", whole if dialect == "codex-2026" else section)

    def command(text: str) -> None:
        assert tools.call(run, {"cmd": text} if dialect == "codex-2026" else {"commands": [text]}).success

    assert patch("one", "1").success
    (root / "file").write_text("1\n2\n")
    stale = patch("1", "one")
    assert (stale.error and stale.error.code) == "stale_file"
    assert "cat file" in stale.hints
    command("true")
    command("touch other")
    assert not patch("1", "one").success
    command("cat file")
    assert patch("1", "one").success
    assert (root / "file").read_text() == "one\n2\n"
