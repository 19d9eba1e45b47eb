"""The command line as somebody meets it who does not know it yet."""

import re
from pathlib import Path

import pytest
from command import ARGV, usage_error
from command import in_process as handrail
from terminal import Terminal

from handrail.surfaces.cli.terminal_question import HELP
from handrail.surfaces.client_config import CLIENTS

PROMPT = "Approve? (y/n/always): "


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")  # no line that comes and goes where the machine is slow


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("cal", "No such command 'cal'. Did you mean call?"),
        ("docter", "No such command 'docter'. Did you mean doctor?"),
        ("xyzzy", "No such command 'xyzzy'."),
    ],
)
def test_a_mistyped_command_is_told_which_was_meant(typed: str, says: str) -> None:
    assert usage_error(handrail(typed)) == says


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("run_in_termnal", "run_in_terminal"), ("exec_comand", "exec_command"), ("file.raed", "file.read")],
)
def test_a_mistyped_tool_is_shown_the_tools_of_the_dialect_that_was_meant(root: Path, typed: str, meant: str) -> None:
    done = handrail("call", typed, "{}", "--root", str(root))
    assert done.returncode == 1
    assert re.search(rf"Suggestion: Use one of: .*\b{re.escape(meant)}\b", done.stdout)


def test_a_tool_like_no_other_is_answered_in_the_first_dialect(root: Path) -> None:
    assert "Use one of: file.read, " in handrail("call", "xyzzy", "{}", "--root", str(root)).stdout


def test_the_answers_fit_a_terminal_of_eighty_columns() -> None:
    assert max(map(len, HELP.split("\n"))) < 80


def test_the_end_of_the_input_ends_the_line_of_the_question(root: Path) -> None:
    argv = [*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)]
    with Terminal(*argv) as terminal:
        terminal.until(PROMPT)
        terminal.send("\x04")
        status, _, rest = terminal.finish()
    assert (status, rest) == (3, "\n")


def test_a_session_that_waits_at_a_terminal_says_for_what(root: Path) -> None:
    with Terminal(*ARGV, "run", "--root", str(root)) as terminal:
        terminal.until("handrail: waiting for calls, one JSON object per line; press Ctrl-D to end")
        terminal.send("\x04")
        assert terminal.finish()[:2] == (0, "")
    assert handrail("run", "--root", str(root)).stderr == ""


@pytest.mark.parametrize(("command", "choices"), [("config", [*CLIENTS]), ("completion", ["bash", "zsh", "fish"])])
def test_the_choices_are_named_in_the_help_and_in_the_error(command: str, choices: list[str]) -> None:
    helped = handrail(command, "--help").stdout
    assert all(choice in helped for choice in choices)
    error = usage_error(handrail(command))
    assert error.startswith(f"Missing argument '{'CLIENT' if command == 'config' else 'SHELL'}'. Choose from:")


@pytest.mark.parametrize("command", [[], ["approvals"]])
def test_no_line_of_an_overview_is_cut(command: list[str]) -> None:
    assert "..." not in handrail(*command, "--help").stdout.partition("Commands:")[2]
