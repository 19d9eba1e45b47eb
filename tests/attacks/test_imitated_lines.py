"""Attacks the question in a terminal: what a model writes must not look like a line of the question itself."""

import json
from pathlib import Path

import pytest
from support.command_line import ARGV
from support.pseudo_terminal import Terminal, unwrapped

COLUMNS = 80
FALSE = "Sandbox: strict, without any network"
RUN = ("run_in_terminal", {"command": "echo TEXT"}, "Command: echo ")
WRITE = ("create_file", {"path": "a.txt", "content": "TEXT"}, "+")
NAME = ("create_file", {"path": "TEXT", "content": "x"}, "  path: ")


def columns(line: str) -> int:
    return sum(1 if char.isascii() else 2 for char in line)


@pytest.mark.parametrize("fill", [" ", "\u4e00", "\uff21", "\U0001f600"])
@pytest.mark.parametrize(("tool", "params", "before"), [RUN, WRITE, NAME])
def test_long_line_of_model_never_begins_a_row(
    root: Path, tool: str, params: dict[str, str], before: str, fill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fills the row of a terminal, so that the terminal itself would put the rest at the beginning of the next one."""
    monkeypatch.setenv("NO_COLOR", "1")
    count, rest = divmod(COLUMNS - len(before), columns(fill))
    text = " " * rest + fill * count + FALSE
    given = json.dumps({name: value.replace("TEXT", text) for name, value in params.items()})
    argv = (*ARGV, "call", tool, given, "--dialect", "copilot", "--root", str(root))
    with Terminal(*argv, columns=COLUMNS) as terminal:
        shown = terminal.until("Approve?")
        terminal.send("n\n")
        terminal.finish()
    assert FALSE in unwrapped(shown)
    assert not [line for line in shown.split("\n") if line.startswith(FALSE) or columns(line) > COLUMNS]
