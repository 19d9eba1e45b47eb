"""Tests undo, redo and restore, which never overwrite changes of others."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from support.tree import snapshot

from handrail import Question, Workspace
from handrail.errors import DeniedError, UndoError
from handrail.kernel.journal.journal import JournalEntry
from handrail.runtime.undo_plan import Plan


@pytest.fixture
def workspace(root: Path) -> Any:
    with Workspace(str(root), approve="auto", sandbox="off") as opened:
        yield opened


def write(workspace: Workspace, path: str, content: str) -> None:
    workspace.call("file", "file.read", {"path": path})
    result = workspace.call("file", "file.write", {"path": path, "content": content})
    assert result.success, result


def shell(workspace: Workspace, command: str) -> None:
    result = workspace.call("codex", "shell", {"command": command})
    assert result.success, result
    assert not result.warnings, result


def conflicts(plan: Plan) -> dict[str, str]:
    assert not plan.done
    return {clash.path: clash.why for clash in plan.conflicts}


def kinds(workspace: Workspace) -> list[tuple[str, tuple[int, ...]]]:
    entries = [each for each in workspace._services.journal.backwards() if isinstance(each, JournalEntry)]
    return [(each.origin.kind, each.origin.undoes) for each in reversed(entries)]


CASES: dict[str, str] = {
    "an edit": "printf 'new\\n' > file",
    "a deletion, with its mode": "rm script",
    "a move": "mv file sub/moved",
    "a mode": "chmod 600 script",
    "a directory moved": "mv sub elsewhere",
    "a directory deleted": "rm -r sub",
    "an empty directory deleted": "rmdir empty",
    "new directories": "mkdir -p x/y/z; touch x/y/z/file",
    "a link deleted": "rm link",
    "a link turned": "ln -sfn sub link",
    "a file that became a link": "rm file; ln -s script file",
    "a link that became a file": "rm link; echo text > link",
    "a new link that leads nowhere": "ln -s nowhere/at/all new",
    "names that need quoting": "mv file 'a \"b\" \t c'; touch $'caf\\xe9'",
    "a file that became a directory": "rm file; mkdir file",
    "a file that became a full directory": "rm file; mkdir -p file/x/y; touch file/x/y/z file-2; ln -s x file/l",
    "a link that became a directory": "rm link; mkdir -m 750 link; echo x > link/x; chmod 600 link/x",
    "a directory that became a file": "rm -r sub; echo text > sub",
    "a directory that became a link to what it was": "mkdir sub/q; mv sub elsewhere; ln -s elsewhere sub",
    "an empty directory that became a link": "rmdir empty; ln -s sub empty",
    "names that changed places": "mv file f; mv sub file; mv f sub",
    "many things at once": "rm script; mv sub sub2; echo x >> file; mkdir q; ln -s q r; chmod +x file",
}


@pytest.mark.parametrize("case", CASES)
def test_undo_command_changes_undone_and_redone(workspace: Workspace, root: Path, case: str) -> None:
    (root / "file").write_text("old\n")
    (root / "script").write_text("#!/bin/sh\n")
    os.chmod(root / "script", 0o751)
    (root / "sub").mkdir()
    (root / "sub" / "inner").write_bytes(b"\0binary\xff")
    (root / "empty").mkdir(mode=0o700)
    (root / "link").symlink_to("script")
    before = snapshot(root)
    shell(workspace, CASES[case])
    after = snapshot(root)
    assert after != before
    assert workspace.history().undo().done
    assert snapshot(root) == before
    assert workspace.history().redo().done
    assert snapshot(root) == after
    assert workspace.history().undo(1).done
    assert snapshot(root) == before
    assert kinds(workspace) == [("command", ()), ("undo", (1,)), ("redo", (2,)), ("undo", (1,))]


def test_undo_since_reverts_commits_of_several_files(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("one\n")
    os.chmod(root / "a", 0o750)
    before = snapshot(root)
    body = "*** Update File: a\n*** Move to: d/b\n@@\n-one\n+two\n*** Add File: d/c\n+new\n"
    patch = f"*** Begin Patch\n{body}*** End Patch\n"
    assert workspace.call("codex", "apply_patch_freeform", {"patch": patch}).success
    assert workspace.call("copilot", "create_directory", {"path": "d/e/f"}).success
    after = snapshot(root)
    history = workspace.history()
    assert sorted(history.undo(since=1).numbers) == [1, 2]
    assert snapshot(root) == before
    assert history.redo().done
    assert snapshot(root) == after


def test_undo_steps_back_and_redo_steps_forward(workspace: Workspace, root: Path) -> None:
    for text in "abc":
        write(workspace, "file", text)
    history, seen = workspace.history(), []
    for _ in range(3):
        assert history.undo().done
        seen.append((root / "file").read_text() if (root / "file").exists() else "")
    assert seen == ["b", "a", ""]
    with pytest.raises(UndoError, match="nothing to undo"):
        history.undo()
    for _ in range(3):
        assert history.redo().done
    assert (root / "file").read_text() == "c"
    with pytest.raises(UndoError, match="nothing to redo"):
        history.redo()
    assert history.undo().numbers == (3,)


def test_undo_middle_entry_is_merged(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "".join(f"{n}\n" for n in range(10)))
    text = (root / "file").read_text()
    write(workspace, "file", text.replace("2\n", "two\n"))
    write(workspace, "file", text.replace("2\n", "two\n").replace("8\n", "eight\n"))
    plan = workspace.history().undo(2)
    assert plan.merged == ["file"]
    assert (root / "file").read_text() == text.replace("8\n", "eight\n")


def test_undo_other_lines_changed_are_merged(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a\nb\nc\nd\ne\n")
    write(workspace, "file", "a\nB\nc\nd\ne\n")
    (root / "file").write_text("a\nB\nc\nd\nE\n")
    assert workspace.history().undo().done
    assert (root / "file").read_text() == "a\nb\nc\nd\nE\n"


def test_undo_file_changed_since_is_conflict_and_changes_nothing(workspace: Workspace, root: Path) -> None:
    write(workspace, "other", "x")
    shell(workspace, "echo y > other; printf 'b\\n' > file")
    (root / "file").write_text("c\n")
    before = snapshot(root)
    plan = workspace.history().undo()
    assert conflicts(plan) == {"file": "changed"}
    assert "-b\n+c\n" in plan.conflicts[0].diff
    assert snapshot(root) == before
    assert kinds(workspace) == [("commit", ()), ("command", ())]


def test_undo_never_overwrites_new_files(workspace: Workspace, root: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_text(name)
    (root / "d").mkdir()
    shell(workspace, "rm a b; rmdir d; mkdir made; touch made/file")
    (root / "a").mkdir()
    (root / "b").symlink_to("a")
    (root / "d").write_text("mine")
    (root / "made" / "mine").write_text("mine")
    assert conflicts(workspace.history().undo()) == {"a": "in_the_way", "b": "changed", "d": "in_the_way"}
    os.rmdir(root / "a")
    os.unlink(root / "b")
    os.unlink(root / "d")
    assert workspace.history().undo().done
    assert sorted(os.listdir(root)) == ["a", "b", "d", "made"]
    assert os.listdir(root / "made") == ["mine"]


def test_undo_already_reverted_file_counts_as_undone(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a")
    write(workspace, "file", "b")
    (root / "file").write_text("a")
    assert workspace.history().undo().done
    assert workspace.history().undo().numbers == (1,)
    assert os.listdir(root) == []


def test_undo_keeps_mode_set_since(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a")
    write(workspace, "file", "b")
    os.chmod(root / "file", 0o700)
    assert workspace.history().undo().done
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o700


def test_undo_missing_old_contents_is_conflict(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a")
    write(workspace, "file", "b")
    (kept,) = [
        each for each in workspace._services.journal.backwards() if isinstance(each, JournalEntry) and each.n == 1
    ]
    node = kept.files[0].after
    assert node is not None
    workspace._services.journal.blobs.drop([node.kept])
    assert conflicts(workspace.history().undo()) == {"file": "damaged"}
    assert (root / "file").read_text() == "b"


def test_undo_session_reverts_only_that_session(workspace: Workspace, root: Path) -> None:
    write(workspace, "mine", "1")
    other = workspace.session()
    for path in ("theirs", "also/theirs"):
        assert other.tools("file").call("file.write", {"path": path, "content": "x"}).success
    write(workspace, "mine", "2")
    plan = workspace.history().undo(of=other.id)
    other.close()
    assert plan.numbers == (3, 2)
    assert sorted(os.listdir(root)) == ["mine"]


def test_undo_dry_run_plans_and_changes_nothing(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a")
    plan = workspace.history().undo(dry_run=True)
    assert [change.path for change in plan.changes] == ["file"]
    assert not plan.done
    assert (root / "file").read_text() == "a"


def test_undo_unknown_entry_or_path_is_an_error(workspace: Workspace) -> None:
    write(workspace, "file", "a")
    history = workspace.history()
    with pytest.raises(UndoError, match="entry 7 not found"):
        history.undo(7)
    with pytest.raises(UndoError, match="entry 0 not found"):
        history.undo(0)
    with pytest.raises(UndoError, match="nothing to undo"):
        history.undo(of="nobody")
    history.undo()
    with pytest.raises(UndoError, match="entry 1 is already undone"):
        history.undo(1)
    with pytest.raises(UndoError, match="entry 9 not found"):
        history.restore("file", 9)
    with pytest.raises(UndoError, match="the journal has no entry for unknown"):
        history.restore("unknown", 1)


def test_undo_asks_and_denial_changes_nothing(root: Path) -> None:
    asked: list[Question] = []

    def answer(question: Question) -> bool:
        asked.append(question)
        return len(asked) < 2

    with Workspace(str(root), approver=answer) as workspace:
        write(workspace, "file", "a")
        with pytest.raises(DeniedError):
            workspace.history().undo()
    assert (asked[1].tool, asked[1].targets) == ("undo", ("file",))
    assert (root / "file").read_text() == "a"


def test_undo_file_changed_during_question_is_planned_again(root: Path) -> None:
    def answer(question: Question) -> bool:
        if question.tool == "undo" and (root / "file").read_text() == "a\nB\nc\n":
            (root / "file").write_text("a\nB\nc\nd\ne\n")
        return True

    with Workspace(str(root), approver=answer) as workspace:
        write(workspace, "file", "a\nb\nc\n")
        write(workspace, "file", "a\nB\nc\n")
        assert workspace.history().undo().done
    assert (root / "file").read_text() == "a\nb\nc\nd\ne\n"


def test_restore_file_returns_to_entry(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("first")
    for text in ("second", "third"):
        write(workspace, "file", text)
    assert workspace.call("file", "file.delete", {"path": "file"}).success
    write(workspace, "other", "x")
    history = workspace.history()
    for at, text in ((1, "second"), (2, "third"), (1, "second")):
        assert history.restore("file", at).done
        assert (root / "file").read_text() == text
    assert history.restore("file", 3).done
    assert not (root / "file").exists()
    assert history.undo().done
    assert (root / "file").read_text() == "second"


def test_restore_directory_returns_all_recorded_files(workspace: Workspace, root: Path) -> None:
    write(workspace, "d/a", "a1")
    write(workspace, "d/e/b", "b1")
    before = snapshot(root)
    write(workspace, "d/a", "a2")
    shell(workspace, "rm -r d/e; touch d/new; touch x")
    assert workspace.history().restore("d", 2).done
    os.unlink(root / "x")
    assert snapshot(root) == before
    shell(workspace, "rm -r d")
    (root / "d").write_text("in the way")
    assert conflicts(workspace.history().restore("d", 2))["d"] == "in_the_way"


def test_undo_result_is_not_stale_for_its_session(workspace: Workspace, root: Path) -> None:
    write(workspace, "file", "a")
    write(workspace, "file", "b")
    assert workspace.history().undo().done
    edit = {"path": "file", "patches": [{"find": "a", "replace": "c"}]}
    assert workspace.call("file", "file.patch", edit).success


def test_undo_never_removes_directory_with_foreign_contents(workspace: Workspace, root: Path) -> None:
    (root / "file").write_text("old")
    shell(workspace, "rm file; mkdir -p file/x; touch file/x/y")
    (root / "file" / "x" / "mine").write_text("mine")
    before = snapshot(root)
    assert conflicts(workspace.history().undo()) == {"file": "in_the_way"}
    assert snapshot(root) == before
    (root / "file" / "x" / "mine").unlink()
    (root / "file" / "x" / "y").write_text("mine")
    assert conflicts(workspace.history().undo()) == {"file": "in_the_way", "file/x/y": "changed"}


@pytest.mark.parametrize("meanwhile", ["top", "x/deep", "x/y"])
def test_undo_file_added_to_directory_during_question_is_kept(root: Path, meanwhile: str) -> None:
    (root / "file").write_text("old")

    def answer(question: Question) -> bool:
        if question.tool == "undo":
            assert question.targets == ("f", "file", "file/x", "file/x/y")
            (root / "file" / meanwhile).write_text("mine")
        return True

    with Workspace(str(root), approver=answer, sandbox="off") as workspace:
        shell(workspace, "mv file f; mkdir -p file/x; touch file/x/y")
        assert not workspace.history().undo().done
        assert (root / "file" / meanwhile).read_text() == "mine"
        assert sorted(os.listdir(root)) == ["f", "file"]


def test_undo_path_moved_behind_link_is_conflict(workspace: Workspace, root: Path) -> None:
    write(workspace, "d/file", "old")
    write(workspace, "d/file", "new")
    os.rename(root / "d", root / "e")
    (root / "d").symlink_to("e")
    assert conflicts(workspace.history().undo()) == {"d/file": "changed"}
    assert (root / "e" / "file").read_text() == "new"


def test_undo_chosen_paths_succeed_despite_unkept_file(root: Path) -> None:
    (root / "a").write_text("old")
    (root / "big").write_text("x" * 100)
    with Workspace(str(root), approve="auto", sandbox="off", limits={"scan_file_bytes": 50}) as workspace:
        assert workspace.call("codex", "shell", {"command": "echo new > a; echo >> big; mkdir d; touch d/e"}).success
        history = workspace.history()
        plan = history.undo()
        assert conflicts(plan) == {"big": "not_kept"}
        assert history.undo(1, ["a", "d"]).done
        assert (root / "a").read_text() == "old"
        assert not (root / "d").exists()
        assert kinds(workspace) == [("command", ()), ("undo", ())]
        assert history.redo().done
        assert (root / "a").read_text() == "new\n"
        with pytest.raises(UndoError, match="entry 1 did not change b, a/x"):
            history.undo(1, ["a", "b", "a/x"])
        assert history.undo(1, ["a"]).done
        assert conflicts(history.undo(1, ["."])) == {"big": "not_kept"}


def test_restore_at_zero_is_before_first_entry(workspace: Workspace, root: Path) -> None:
    (root / "a").write_text("old")
    shell(workspace, "echo new > a; touch b")
    shell(workspace, "rm a; mkdir a; touch a/b")
    history = workspace.history()
    assert history.restore("a", 0).done
    assert (root / "a").read_text() == "old"
    assert history.restore("b", 0).done
    assert os.listdir(root) == ["a"]
    assert history.restore("a", 2).done
    assert os.listdir(root / "a") == ["b"]
    assert history.undo().done
    assert (root / "a").read_text() == "old"


def test_history_entries_tell_undone_and_undoable(root: Path) -> None:
    (root / "large").write_bytes(b"x" * 100)
    with Workspace(str(root), approve="auto", limits={"edit_bytes": 50}) as workspace:
        history = workspace.history()
        assert history.entries() == []
        assert workspace.call("file", "file.write", {"path": "new/a b", "content": "x"}).success
        assert workspace.call("file", "file.delete", {"path": "large"}).success
        assert history.undo(1).done
        newest, second, first = history.entries()
        assert [(each.n, each.tool, each.undone, each.undoable) for each in (newest, second, first)] == [
            (3, "undo", False, True),
            (2, "file.delete", False, False),  # too large to be kept
            (1, "file.write", True, False),
        ]
        assert (first.files, second.files) == (["new", "new/a b"], ["large"])
        assert newest.time >= first.time > 0
        assert history.entries(1) == [newest]
        assert history.entries(session=first.entry.origin.session) == [newest, second, first]
        assert history.entries(session="another") == []
