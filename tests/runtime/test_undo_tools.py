"""Tests the tools of the history through the library: they are offered on request, and ask like any change."""

from pathlib import Path
from typing import Any

import pytest
from support.hooks import HookWriter, own, table

from handrail import Question, Verdict, Workspace
from handrail.dialects import NAMES

UNDO = ["history", "undo", "restore", "mark"]


def write(workspace: Workspace, name: str, content: str) -> None:
    assert workspace.tools("file").call("file.write", {"path": name, "content": content}).success


def output(workspace: Workspace, tool: str, **params: Any) -> dict[str, Any]:
    result = workspace.tools("file", with_undo=True).call(tool, params)
    assert result.success, result.error
    assert isinstance(result.output, dict)
    return dict(result.output)


def code(workspace: Workspace, tool: str, **params: Any) -> str:
    result = workspace.tools("file", with_undo=True).call(tool, params)
    assert result.error is not None
    return result.error.code


@pytest.mark.parametrize("dialect", NAMES)
def test_undo_tools_are_offered_only_on_request(workspace: Workspace, dialect: str) -> None:
    plain, more = workspace.tools(dialect), workspace.tools(dialect, with_undo=True)
    assert not {*plain.tools} & {*UNDO}
    assert [*more.tools] == [*plain.tools, *UNDO]
    assert {"undo", "history"} <= {each["name"] for each in more.functions()}
    assert {"undo", "history"} <= {each["function"]["name"] for each in more.openai()}


def test_undo_tools_in_read_only_workspace_only_read(root: Path) -> None:
    with Workspace(root, read_only=True) as workspace:
        tools = workspace.tools("file", with_undo=True).tools
        assert {*tools} & {*UNDO} == {"history", "mark"}


def test_undo_tool_takes_back_the_last_change_of_the_session(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1\n")
    with workspace.session() as other:
        assert other.tools("file").call("file.write", {"path": "b.txt", "content": "2\n"}).success
    done = output(workspace, "undo")
    assert (done["done"], done["entries"]) == (True, [1])
    assert "-1\n" in done["diff"]
    assert [path.name for path in root.iterdir()] == ["b.txt"]
    assert code(workspace, "undo") == "undo_failed"
    assert output(workspace, "undo", all_sessions=True)["entries"] == [2]


def test_undo_tool_reports_files_and_origin(workspace: Workspace) -> None:
    write(workspace, "a.txt", "1\n")
    result = workspace.tools("file", with_undo=True).call("undo", {}, call_id="call-9")
    assert result.files_affected == ["a.txt"]
    origin = workspace.history().entries()[0].entry.origin
    assert (origin.kind, origin.call_id) == ("undo", "call-9")


def test_undo_tool_dry_run_changes_nothing(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1\n")
    assert output(workspace, "undo", dry_run=True)["done"] is False
    assert (root / "a.txt").exists()


def test_undo_tool_takes_back_to_a_mark(workspace: Workspace, root: Path) -> None:
    assert output(workspace, "mark", name="begin") == {"mark": "begin", "entry": 1}
    write(workspace, "a.txt", "1\n")
    write(workspace, "b.txt", "2\n")
    assert output(workspace, "undo", to="begin")["entries"] == [3, 2]
    assert list(root.iterdir()) == []


def test_undo_tool_conflict_shows_the_later_change(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1\n")
    (root / "a.txt").write_text("mine\n")
    result = workspace.tools("file", with_undo=True).call("undo", {})
    assert result.error is not None
    assert result.error.code == "undo_conflict"
    assert "+mine" in result.error.message
    assert (root / "a.txt").read_text() == "mine\n"


def test_restore_tool_restores_an_earlier_state(workspace: Workspace, root: Path) -> None:
    for content in "12":
        write(workspace, "a.txt", content)
    assert output(workspace, "restore", path="a.txt", at=1)["done"]
    assert (root / "a.txt").read_text() == "1"
    assert code(workspace, "restore", path="../x", at=1) == "path_outside_workspace"


def test_history_tool_lists_entries_and_shows_a_diff(workspace: Workspace) -> None:
    write(workspace, "a.txt", "1\n")
    output(workspace, "mark", name="turn 2")
    listed = output(workspace, "history")["entries"]
    assert [(each["n"], each["kind"], each.get("mark")) for each in listed] == [
        (2, "mark", "turn 2"),
        (1, "commit", None),
    ]
    assert "+1\n" in output(workspace, "history", entry=1)["diff"]
    assert code(workspace, "history", entry=9) == "undo_failed"


def test_history_tool_shows_no_command_of_another_session(root: Path) -> None:
    with Workspace(root, approve="auto", sandbox="off") as workspace:
        with workspace.session() as other:
            assert other.tools("bash").call("bash", {"command": "echo x > a.txt # token 123"}).success
        listed = output(workspace, "history", all_sessions=True)["entries"]
    assert listed[0]["files"][0]["path"] == "a.txt"
    assert "command" not in listed[0]


def test_history_tool_shows_no_protected_file(root: Path) -> None:
    with Workspace(root, approve="auto") as workspace:
        write(workspace, "key.txt", "secret\n")
    with Workspace(root, approve="auto", protect=["key.txt"]) as workspace:
        assert output(workspace, "history", all_sessions=True)["entries"][0]["files"] == []
        assert output(workspace, "history", entry=1)["diff"] == "key.txt: protected\n"
        assert code(workspace, "undo", entry=1) != "internal_error"
        assert (root / "key.txt").exists()


def test_undo_tool_asks_like_any_change(root: Path) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow() if question.tool == "file.write" else Verdict.deny("keep it")

    with Workspace(root, approver=approver) as workspace:
        write(workspace, "a.txt", "1\n")
        assert code(workspace, "undo") == "approval_denied"
        assert code(workspace, "restore", path="a.txt", at=0) == "approval_denied"
    assert [question.tool for question in asked] == ["file.write", "undo", "restore"]
    assert (root / "a.txt").exists()


def test_hook_that_asks_is_heard_by_the_undo_tool(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook(own(permissionDecision="ask")), matcher="undo")
    with Workspace(root, approve="auto", approver=lambda _: False, hooks=hooks) as workspace:
        write(workspace, "a.txt", "1\n")
        assert code(workspace, "undo") == "approval_denied"
    assert (root / "a.txt").exists()
