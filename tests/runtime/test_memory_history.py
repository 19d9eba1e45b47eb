"""Tests that changes of the memory directory are asked for, recorded, undone and recovered like all others."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail
from support.forked_processes import start

from handrail import Question, Verdict, Workspace
from handrail.kernel.host.state_dir import State
from handrail.kernel.write import finish, writer

CREATE = {"command": "create", "path": "/memories/notes/a.md", "file_text": "one\n"}
REPLACE = {"command": "str_replace", "path": "/memories/notes/a.md", "old_str": "one", "new_str": "two"}


def memory(workspace: Workspace, **params: Any) -> Any:
    result = workspace.call("claude", "memory", params)
    assert result.success, result
    return result.output


def kept(root: Path) -> dict[str, str]:
    top = Path(State.of(str(root)).path) / "memories"
    return {str(each.relative_to(top)): each.read_text() for each in sorted(top.rglob("*")) if each.is_file()}


def test_memory_change_is_named_and_undone(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        memory(workspace, **REPLACE)
        history = workspace.history()
        assert [entry.files for entry in history.entries()] == [
            ["/memories/notes/a.md"],
            ["/memories/notes", "/memories/notes/a.md"],
        ]
        assert history.undo().done
        assert kept(root) == {"notes/a.md": "one\n"}
        assert history.redo().done
        assert kept(root) == {"notes/a.md": "two\n"}
        assert history.restore("/memories/notes/a.md", 1).done
        assert kept(root) == {"notes/a.md": "one\n"}
        assert history.undo(1, ["/memories/notes/a.md"]).done
        assert kept(root) == {}
    assert not list(root.iterdir())


def test_undo_of_both_trees_is_one_commit(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        assert workspace.call("file", "file.write", {"path": "notes/a.md", "content": "workspace"}).success
        memory(workspace, command="rename", old_path="/memories/notes", new_path="/memories/moved")
        memory(workspace, command="delete", path="/memories/moved")
        history = workspace.history()
        plan = history.undo(since=1)
        assert plan.done
        assert (kept(root), list(root.iterdir())) == ({}, [])
        assert history.entries()[0].entry.origin.undoes == (4, 3, 2, 1)
        assert history.redo().done
        assert (root / "notes/a.md").read_text() == "workspace"


def test_undo_restores_deleted_and_renamed_directories(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        memory(workspace, command="create", path="/memories/notes/deep/b.md", file_text="b")
        before = kept(root)
        memory(workspace, command="rename", old_path="/memories/notes", new_path="/memories/x/y")
        assert kept(root) == {"x/y/a.md": "one\n", "x/y/deep/b.md": "b"}
        memory(workspace, command="delete", path="/memories/x")
        assert kept(root) == {}
        history = workspace.history()
        assert history.undo().done
        assert kept(root) == {"x/y/a.md": "one\n", "x/y/deep/b.md": "b"}
        assert history.undo(3).done
    assert kept(root) == before


def test_undo_of_memory_that_changed_since_reports_conflict(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        memory(workspace, **REPLACE)
        (Path(State.of(str(root)).path) / "memories/notes/a.md").write_text("mine\n")
        plan = workspace.history().undo()
    assert [(each.path, each.why) for each in plan.conflicts] == [("/memories/notes/a.md", "changed")]
    assert kept(root) == {"notes/a.md": "mine\n"}


def test_memory_question_shows_change_and_one_form(root: Path) -> None:
    asked: list[Question] = []

    def approve(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    with Workspace(str(root), approve="ask", approver=approve) as workspace:
        memory(workspace, **CREATE)
        memory(workspace, command="insert", path="/memories/./notes/a.md", insert_line=0, new_str="zero")
        (root / "a.txt").write_text("one\n")
        edit = {"command": "insert", "path": f"{root}/a.txt", "insert_line": 1, "new_str": "new"}
        assert workspace.call("claude", "str_replace_based_edit_tool", edit).success
        memory(workspace, command="view", path="/memories")
    assert [question.targets for question in asked] == [("/memories/notes/a.md",)] * 2 + [("a.txt",)]
    assert asked[1].resolved is not None
    assert asked[1].resolved["path"] == "/memories/notes/a.md"
    assert [(each.params.get("insert_text"), "new_str" in each.params) for each in asked[1:]] == [
        ("zero", False),
        ("new", False),
    ]


def test_memory_rule_does_not_cover_workspace(root: Path) -> None:
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(exist_ok=True)
    (config / "approvals.toml").write_text(
        '[[rule]]\ntool = "memory"\npattern = \'.*"path":"/memories/notes/[^"]*".*\'\n'
    )
    with Workspace(str(root), approve="ask") as workspace:
        memory(workspace, **CREATE)
        other = workspace.call("claude", "memory", CREATE | {"path": "/memories/other.md"})
    assert other.error is not None
    assert other.error.code == "approval_denied"


def test_history_command_names_and_undoes_memory(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
    listed = handrail("history", "--root", str(root))
    assert "/memories/notes/a.md" in listed.stdout or "/memories/notes" in listed.stdout
    assert "/memories/notes/a.md" in handrail("show", "1", "--root", str(root)).stdout
    undone = handrail("undo", "--root", str(root), "--approve", "auto")
    assert undone.returncode == 0, undone.stderr
    assert kept(root) == {}


def test_memory_is_one_for_each_workspace_and_outlives_sessions(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
    with Workspace(str(root), approve="auto") as workspace:
        assert "one" in memory(workspace, command="view", path="/memories/notes/a.md")
    with Workspace(str(other), approve="auto") as workspace:
        assert "notes" not in memory(workspace, command="view", path="/memories")


def test_memory_viewed_then_changed_by_another_process_is_stale(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        memory(workspace, command="view", path="/memories/notes/a.md")
        (Path(State.of(str(root)).path) / "memories/notes/a.md").write_text("one more\n")
        result = workspace.call("claude", "memory", REPLACE)
    assert result.error is not None
    assert result.error.code == "stale_file"


def test_memory_with_too_many_entries_is_not_deleted(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"memory_entries": 3}) as workspace:
        for name in "abc":
            memory(workspace, command="create", path=f"/memories/d/{name}", file_text=name)
        for params in (
            {"command": "delete", "path": "/memories/d"},
            {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/e"},
        ):
            result = workspace.call("claude", "memory", params)
            assert result.error is not None
            assert result.error.code == "too_many_entries"
    assert len(kept(root)) == 3


def _die(root: str, where: str) -> None:
    """Be killed in the middle of a commit to the memory."""
    owner, name = (writer, "_publish") if where == "publish" else (finish.Finish, "enter")
    setattr(owner, name, lambda *_, **__: os._exit(9))
    Workspace(root, approve="auto").call("claude", "memory", REPLACE)


@pytest.mark.parametrize("where", ["publish", "journal"])
def test_killed_memory_commit_is_rolled_back_or_finished(root: Path, where: str) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
    process = start(_die, str(root), where)
    process.join()
    assert process.exitcode == 9
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.recovered == 1
        entries = workspace.history().entries()
    done = where == "journal"
    assert (kept(root), len(entries)) == ({"notes/a.md": "two\n" if done else "one\n"}, 1 + done)


def test_memory_file_of_other_kind_or_too_many_lines_is_refused(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        memory(workspace, **CREATE)
        top = Path(State.of(str(root)).path) / "memories"
        os.mkfifo(top / "pipe")
        (top / "long").write_bytes(b"\n" * 999_999)
        for name, said in (
            ("pipe", "Unsupported file type for /memories/pipe"),
            ("long", "File /memories/long exceeds maximum line limit of 999,999 lines."),
        ):
            result = workspace.call("claude", "memory", {"command": "view", "path": f"/memories/{name}"})
            assert (result.success, result.output) == (False, said)
