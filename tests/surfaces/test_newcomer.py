"""Tests the command line from the view of a new user: typing mistakes, help, prompts."""

import re
from pathlib import Path

import pytest
from support.command_line import ARGV, usage_error
from support.command_line import in_process as handrail
from support.pseudo_terminal import Terminal

from handrail.surfaces.clients.client_records import CLIENTS

PROMPT = "Approve? (y/n/a/e): "


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")  # no progress line, which would depend on the speed of the machine


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("cal", "No such command 'cal'. Did you mean call?"),
        ("docter", "No such command 'docter'. Did you mean doctor?"),
        ("xyzzy", "No such command 'xyzzy'."),
    ],
)
def test_cli_mistyped_command_gets_suggestion(typed: str, says: str) -> None:
    assert usage_error(handrail(typed)) == says


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("run_in_termnal", "run_in_terminal"), ("exec_comand", "exec_command"), ("file.raed", "file.read")],
)
def test_call_mistyped_tool_lists_tools_of_meant_dialect(root: Path, typed: str, meant: str) -> None:
    done = handrail("call", typed, "{}", "--root", str(root))
    assert done.returncode == 1
    assert re.search(rf"Suggestion: The nearest tool is .* Use one of: .*\b{re.escape(meant)}\b", done.stdout)


def test_call_unknown_tool_lists_tools_of_first_dialect(root: Path) -> None:
    assert "Use one of: file.read, " in handrail("call", "xyzzy", "{}", "--root", str(root)).stdout


def test_question_end_of_input_ends_line(root: Path) -> None:
    argv = [*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)]
    with Terminal(*argv) as terminal:
        terminal.until(PROMPT)
        terminal.send("\x04")
        status, _, rest = terminal.finish()
    assert (status, rest) == (3, "\n")


def test_run_at_terminal_says_that_it_waits(root: Path) -> None:
    with Terminal(*ARGV, "run", "--root", str(root)) as terminal:
        terminal.until("handrail: waiting for calls, one JSON object per line; press Ctrl-D to end")
        terminal.send("\x04")
        assert terminal.finish()[:2] == (0, "")
    assert handrail("run", "--root", str(root)).stderr == ""


@pytest.mark.parametrize(("command", "choices"), [("config", [*CLIENTS]), ("completion", ["bash", "zsh", "fish"])])
def test_help_and_error_name_choices(command: str, choices: list[str]) -> None:
    helped = handrail(command, "--help").stdout
    assert all(choice in helped for choice in choices)
    error = usage_error(handrail(command))
    assert error.startswith(f"Missing argument '{'CLIENT' if command == 'config' else 'SHELL'}'. Choose from:")


@pytest.mark.parametrize("command", [[], ["approvals"]])
def test_help_overview_lines_are_whole(command: list[str]) -> None:
    assert "..." not in handrail(*command, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("command", ["call", "run", "agent", "acp"])
def test_help_offers_the_same_workspace_options(command: str) -> None:
    helped = handrail(command, "--help").stdout
    assert all(
        f"  {option} " in helped for option in ("--approve", "--preset", "--read-only", "--sandbox", "--network")
    )


def test_agent_help_says_that_json_is_one_event_per_line() -> None:
    assert "Print one JSON event per line." in handrail("agent", "--help").stdout


@pytest.mark.parametrize(
    ("typed", "meant"), [(["config", "claud-code"], "claude-code"), (["tools", "--dialect", "codx"], "codex")]
)
def test_mistyped_choice_names_the_nearest(typed: list[str], meant: str) -> None:
    assert handrail(*typed).stderr.endswith(f"; did you mean {meant}?\n")
