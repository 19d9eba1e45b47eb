"""What was typed before a question was shown is no answer to it, at a real terminal."""

import io
import json
from pathlib import Path

import pytest
from command import ARGV, envelope
from terminal import Terminal

from handrail import Workspace
from handrail.model.limits import Limits
from handrail.surfaces.cli.terminal_question import TerminalApprover

PROMPT = "Approve? (y/n/always): "
WRITES = [{"tool": "file.write", "params": {"path": name, "content": "x"}} for name in ("a", "b")]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # no line that comes and goes where the machine is slow


def test_a_yes_that_is_typed_twice_approves_one_call(root: Path) -> None:
    with Terminal(*ARGV, "run", "--root", str(root), stdin="\n".join(map(json.dumps, WRITES)).encode()) as terminal:
        terminal.until(PROMPT)
        terminal.send("y\ny\n")
        assert "path: b\n" in terminal.until(PROMPT)
        terminal.send("n\n")
        _, out, _ = terminal.finish()
    assert [envelope(line)["success"] for line in out.splitlines()] == [True, False]
    assert [file.name for file in root.iterdir()] == ["a"]


@pytest.mark.parametrize("typed", ["y\n", "y"], ids=["a line", "the beginning of one"])
def test_what_was_typed_while_the_command_started_is_forgotten(root: Path, typed: str) -> None:
    with Terminal(*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)) as terminal:
        terminal.send(typed)
        terminal.until(PROMPT)
        terminal.send("\n")  # alone it is no answer: the list of answers is shown
        assert "show the question again in full" in terminal.until(PROMPT)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3
    assert list(root.iterdir()) == []


def test_what_was_typed_before_a_pattern_is_shown_is_not_part_of_it(root: Path) -> None:
    with Terminal(*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)) as terminal:
        terminal.until(PROMPT)
        terminal.send("pattern\n\nuser\ny\n")
        terminal.until("\nPattern: ")
        terminal.send("-\n")
        terminal.until(PROMPT)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3


def test_answers_that_are_piped_in_are_taken_one_after_another(root: Path) -> None:
    shown = io.StringIO()
    with Workspace(str(root), approver=TerminalApprover(io.StringIO("y\nn\n"), shown, Limits())) as workspace:
        done = [workspace.call("file", each["tool"], each["params"]).success for each in WRITES]  # type: ignore[arg-type]
    assert (done, shown.getvalue().count(PROMPT)) == ([True, False], 2)
