"""Tests the question of an undo: an answer counts only for the changes that the question showed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Question, Verdict, Workspace
from handrail.errors import DeniedError, UndoError
from handrail.kernel.journal.journal import JournalEntry
from handrail.workspace import internals

PATCH = "*** Begin Patch\n*** Add File: a\n+a\n*** Add File: b\n+b\n*** End Patch\n"


class ScriptedUser:
    """Says yes to every call, but only to the first undo; runs `meanwhile` during the first undo's question."""

    def __init__(self) -> None:
        self.undos = list[tuple[str, ...]]()
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, question: Question) -> bool:
        if question.tool != "undo":
            return True
        self.undos.append(question.targets)
        if len(self.undos) == 1:
            self.meanwhile()
        return len(self.undos) == 1


@pytest.fixture
def asked_user() -> ScriptedUser:
    return ScriptedUser()


@pytest.fixture
def workspace(root: Path, asked_user: ScriptedUser) -> Iterator[Workspace]:
    """With one entry that made the files a and b."""
    with Workspace(str(root), approver=asked_user) as opened:
        assert opened.call("codex", "apply_patch_freeform", {"patch": PATCH}).success
        yield opened


def undone(workspace: Workspace) -> list[tuple[int, ...]]:
    entries = [each for each in workspace._services.journal.backwards() if isinstance(each, JournalEntry)]
    return [each.origin.undoes for each in entries if each.origin.kind == "undo"]


def test_undo_asks_again_when_file_reappears(workspace: Workspace, asked_user: ScriptedUser, root: Path) -> None:
    (root / "b").unlink()
    asked_user.meanwhile = lambda: (root / "b").write_text("b\n")
    with pytest.raises(DeniedError):
        workspace.history().undo()
    assert asked_user.undos == [("a",), ("a", "b")]
    assert ((root / "a").exists(), (root / "b").exists(), undone(workspace)) == (True, True, [])


def test_undo_asks_again_when_empty_plan_gains_file(workspace: Workspace, asked_user: ScriptedUser, root: Path) -> None:
    (root / "a").unlink()
    (root / "b").unlink()
    asked_user.meanwhile = lambda: (root / "a").write_text("a\n")
    with pytest.raises(DeniedError):
        workspace.history().undo()
    assert asked_user.undos == [(), ("a",)]
    assert ((root / "a").exists(), undone(workspace)) == (True, [])


def test_undo_asks_again_when_files_vanish(workspace: Workspace, asked_user: ScriptedUser, root: Path) -> None:
    def vanish() -> None:
        (root / "a").unlink()
        (root / "b").unlink()

    asked_user.meanwhile = vanish
    with pytest.raises(DeniedError):
        workspace.history().undo()
    assert (asked_user.undos, undone(workspace)) == ([("a", "b"), ()], [])


def test_undo_entry_undone_during_question_is_an_error(
    workspace: Workspace, asked_user: ScriptedUser, root: Path
) -> None:
    (root / "a").unlink()
    (root / "b").unlink()
    with Workspace(str(root), approve="auto") as other:
        asked_user.meanwhile = lambda: other.history().undo(1)
        with pytest.raises(UndoError, match="entry 1 is already undone"):
            workspace.history().undo(1)
    assert (asked_user.undos, undone(workspace)) == ([()], [(1,)])


def test_undo_unrelated_change_during_question_asks_once(
    workspace: Workspace, asked_user: ScriptedUser, root: Path
) -> None:
    (root / "b").unlink()
    asked_user.meanwhile = lambda: (root / "other").write_text("x")
    assert workspace.history().undo().done
    assert (asked_user.undos, undone(workspace), (root / "a").exists()) == ([("a",)], [(1,)], False)


def test_undo_without_approver_is_denied_even_if_nothing_changes(root: Path, workspace: Workspace) -> None:
    (root / "a").unlink()
    (root / "b").unlink()
    with Workspace(str(root)) as alone, pytest.raises(DeniedError):
        alone.history().undo()
    assert undone(workspace) == []


def test_undo_approver_that_keeps_rule_allows_once(root: Path) -> None:
    answers = [Verdict.allow(), Verdict(True, "user", always=True), Verdict.deny("no")]
    with Workspace(str(root), approver=lambda _: answers.pop(0)) as opened:
        assert opened.call("codex", "apply_patch_freeform", {"patch": PATCH}).success
        opened.history().undo()
        with pytest.raises(DeniedError):
            opened.history().redo()
        assert not internals(opened).rules.placed()
