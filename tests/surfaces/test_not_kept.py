"""Tests that the command line says what undo cannot restore, before a command changes it and afterwards."""

import json
from pathlib import Path

import pytest
from support.command_line import handrail

from handrail import Workspace


@pytest.fixture
def large(root: Path) -> Path:
    (root / ".gitignore").write_text("data/\n")
    (root / "data").mkdir()
    for number in range(2100):
        (root / "data" / str(number)).touch()
    with open(root / "big.bin", "wb") as file:
        file.truncate(9 * 1024 * 1024)
    (root / "small").write_text("x")
    return root


SENTENCE = "Undo cannot restore what commands change in data/, big.bin: too many files, or too large"


def test_doctor_names_what_undo_cannot_restore(large: Path) -> None:
    assert f"✗ undo: {SENTENCE}" in handrail("doctor", "--root", str(large), "--sandbox", "off").stdout


def test_doctor_of_small_workspace_says_that_undo_restores_all(root: Path) -> None:
    assert (
        "✓ undo: what commands change can be restored"
        in handrail("doctor", "--root", str(root), "--sandbox", "off").stdout
    )


def test_doctor_without_journal_says_that_nothing_is_recorded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_JOURNAL", "off")
    assert "✗ undo: the journal is off" in handrail("doctor", "--root", str(root), "--sandbox", "off").stdout


def test_history_names_what_was_not_kept_before_commands(large: Path) -> None:
    with Workspace(str(large), approve="auto", sandbox="off") as workspace:
        result = workspace.call("codex", "shell", {"command": "echo y > small"})
    assert any("undo cannot restore what commands change in data/, big.bin" in each for each in result.warnings)
    assert SENTENCE in handrail("history", "--root", str(large)).stdout
    listed = json.loads(handrail("history", "--root", str(large), "--json").stdout)
    assert listed["cannot_restore"] == ["data/", "big.bin"]


def test_history_of_small_workspace_names_nothing(root: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        workspace.call("codex", "shell", {"command": "echo y > small"})
    assert "cannot" not in handrail("history", "--root", str(root), "--json").stdout
