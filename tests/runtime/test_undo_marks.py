"""Tests marks: everything since a mark is taken back at once, whatever happened in between."""

from pathlib import Path

import pytest

from handrail import DeniedError, UndoError, Workspace
from handrail.library.client_session import ClientSession


def write(workspace: Workspace | ClientSession, name: str, content: str) -> None:
    assert workspace.tools("file").call("file.write", {"path": name, "content": content}).success


def contents(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir()}


def test_undo_to_mark_takes_back_everything_since(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1")
    assert workspace.mark("turn 1") == 2
    write(workspace, "a.txt", "2")
    write(workspace, "b.txt", "x")
    plan = workspace.history().undo(to="turn 1")
    assert (plan.done, plan.numbers) == (True, (4, 3))
    assert contents(root) == {"a.txt": "1"}
    assert workspace.history().redo().done
    assert contents(root) == {"a.txt": "2", "b.txt": "x"}


def test_undo_to_mark_dry_run_changes_nothing(workspace: Workspace, root: Path) -> None:
    workspace.mark("begin")
    write(workspace, "a.txt", "1")
    plan = workspace.history().undo(to="begin", dry_run=True)
    assert [change.path for change in plan.changes] == ["a.txt"]
    assert contents(root) == {"a.txt": "1"}


def test_undo_to_mark_conflict_changes_nothing(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "one\n")
    workspace.mark("begin")
    write(workspace, "a.txt", "two\n")
    write(workspace, "b.txt", "x\n")
    (root / "a.txt").write_text("other\n")
    plan = workspace.history().undo(to="begin")
    assert not plan.done
    assert [conflict.path for conflict in plan.conflicts] == ["a.txt"]
    assert contents(root) == {"a.txt": "other\n", "b.txt": "x\n"}


def test_undo_to_mark_refused_changes_nothing(root: Path) -> None:
    with Workspace(root, approver=lambda question: question.tool != "undo") as workspace:
        workspace.mark("begin")
        write(workspace, "a.txt", "1")
        with pytest.raises(DeniedError):
            workspace.history().undo(to="begin")
    assert contents(root) == {"a.txt": "1"}


def test_newest_mark_of_a_name_counts(workspace: Workspace, root: Path) -> None:
    for number in "12":
        workspace.mark("turn")
        write(workspace, f"{number}.txt", "x")
    assert workspace.history().undo(to="turn").numbers == (4,)
    assert contents(root) == {"1.txt": "x"}


def test_undo_without_arguments_skips_marks(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1")
    workspace.mark("later")
    assert workspace.history().undo().numbers == (1,)
    assert contents(root) == {}


def test_mark_itself_cannot_be_undone(workspace: Workspace) -> None:
    number = workspace.mark("begin")
    with pytest.raises(UndoError, match="a mark"):
        workspace.history().undo(number)
    assert [entry.undoable for entry in workspace.history().entries()] == [False]


def test_unknown_mark_names_the_nearest(workspace: Workspace) -> None:
    workspace.mark("turn 12")
    with pytest.raises(UndoError, match="unknown mark turn 1; did you mean turn 12"):
        workspace.history().undo(to="turn 1")


def test_undo_to_mark_without_changes_says_so(workspace: Workspace) -> None:
    workspace.mark("begin")
    with pytest.raises(UndoError, match="nothing to undo since the mark begin"):
        workspace.history().undo(to="begin")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\tb", "\x1b[2J", "\u202e", "x" * 201])
def test_mark_name_must_be_one_visible_line(workspace: Workspace, name: str) -> None:
    with pytest.raises(UndoError, match="needs a name"):
        workspace.mark(name)
    assert workspace.history().marks() == []


def test_mark_without_a_journal_is_an_error(root: Path) -> None:
    with Workspace(root, journal="off") as workspace, pytest.raises(UndoError, match="journal is off"):
        workspace.mark("begin")


def test_undo_to_mark_of_one_session_keeps_others(workspace: Workspace, root: Path) -> None:
    with workspace.session() as one, workspace.session() as two:
        one.mark("begin")
        write(one, "one.txt", "1")
        write(two, "two.txt", "2")
        write(one, "both.txt", "1")
        assert workspace.history().undo(to="begin", of=one.id).done
        assert contents(root) == {"two.txt": "2"}
        assert two.history().marks()[0].session == one.id


def test_undo_to_mark_takes_back_an_undo_of_something_older(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1")
    workspace.mark("begin")
    assert workspace.history().undo().done
    assert contents(root) == {}
    assert workspace.history().undo(to="begin").done
    assert contents(root) == {"a.txt": "1"}


def test_undo_to_mark_after_an_undo_across_the_mark(workspace: Workspace, root: Path) -> None:
    write(workspace, "a.txt", "1")
    workspace.mark("begin")
    write(workspace, "b.txt", "2")
    assert workspace.history().undo(since=1).numbers == (3, 1)
    assert workspace.history().undo(to="begin").done
    assert contents(root) == {"a.txt": "1"}
    undone = {entry.n: entry.undone for entry in workspace.history().entries()}
    assert (undone[1], undone[3]) == (False, True)


def test_undo_to_mark_skips_what_is_undone_already(workspace: Workspace, root: Path) -> None:
    workspace.mark("begin")
    write(workspace, "a.txt", "1")
    write(workspace, "b.txt", "2")
    assert workspace.history().undo().done
    assert workspace.history().undo(to="begin").numbers == (2,)
    assert contents(root) == {}


def test_undo_to_mark_after_redo_takes_back_the_change(workspace: Workspace, root: Path) -> None:
    workspace.mark("begin")
    write(workspace, "a.txt", "1")
    assert workspace.history().undo().done
    assert workspace.history().redo().done
    assert contents(root) == {"a.txt": "1"}
    assert workspace.history().undo(to="begin").numbers == (2,)
    assert contents(root) == {}


def test_undo_to_mark_takes_back_a_partial_undo(workspace: Workspace, root: Path) -> None:
    write(workspace, "c.txt", "1")
    workspace.mark("begin")
    assert workspace.history().undo(paths=["c.txt"]).done
    assert workspace.history().undo(to="begin").done
    assert (root / "c.txt").read_text() == "1"
