"""Tests that input typed before a question is discarded, at a real terminal."""

import io
import json
from pathlib import Path

import pytest
from support.command_line import ARGV, envelope
from support.pseudo_terminal import Terminal

from handrail import Workspace
from handrail.model.limits import Limits
from handrail.surfaces.cli.terminal_approver import TerminalApprover

PROMPT = "Approve? (y/n/a/e): "
IN_SESSION = "Approve? (y/n/s/a/e): "
WRITES = [{"tool": "file.write", "params": {"path": name, "content": "x"}} for name in ("a", "b")]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # no progress line, which would depend on the speed of the machine


def test_typed_ahead_second_yes_approves_nothing(root: Path) -> None:
    with Terminal(*ARGV, "run", "--root", str(root), stdin="\n".join(map(json.dumps, WRITES)).encode()) as terminal:
        terminal.until(IN_SESSION)
        terminal.send("y\ny\n")
        assert "path: b\n" in terminal.until(IN_SESSION)
        terminal.send("n\n")
        _, out, _ = terminal.finish()
    assert [envelope(line)["success"] for line in out.splitlines()] == [True, False]
    assert [file.name for file in root.iterdir()] == ["a"]


@pytest.mark.parametrize("typed", ["y\n", "y"], ids=["a line", "the beginning of one"])
def test_typed_ahead_before_question_is_discarded(root: Path, typed: str) -> None:
    with Terminal(*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)) as terminal:
        terminal.send(typed)
        terminal.until(PROMPT)
        terminal.send("\n")  # alone it is no answer: the list of answers is shown
        assert "refuse it; N refuses" in terminal.until(PROMPT)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3
    assert list(root.iterdir()) == []


def test_typed_ahead_before_rule_is_discarded(root: Path) -> None:
    with Terminal(*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)) as terminal:
        terminal.until(PROMPT)
        terminal.send("edit\n\nuser\ny\n")
        terminal.until("back.\r\nRule: ")
        terminal.send("-\n")
        terminal.until(PROMPT)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3


def test_terminal_approver_piped_answers_are_taken_in_order(root: Path) -> None:
    shown = io.StringIO()
    with Workspace(str(root), approver=TerminalApprover(io.StringIO("y\nn\n"), shown, Limits())) as workspace:
        done = [workspace.call("file", each["tool"], each["params"]).success for each in WRITES]  # type: ignore[arg-type]
    assert (done, shown.getvalue().count(IN_SESSION)) == ([True, False], 2)
