"""Words the output of commands, and checks commands before they run."""

from typing import Any

import pytest

from handrail import Workspace
from handrail.kernel.process.bounded_output import Output
from handrail.tools.command_output import output_text


def test_output_text_without_cut_is_the_output() -> None:
    assert output_text("stdout", Output(b"a\xffb\n")) == "a�b\n"


@pytest.mark.parametrize(
    ("spool", "spooled", "line"),
    [
        ("", 0, "[… 6 bytes of stderr not shown …]"),
        ("/s p", 10, "[… 6 bytes of stderr not shown; a command can read all of it: tail -n 50 '/s p' …]"),
        ("/s", 7, "[… 6 bytes of stderr not shown; a command can read its first 7 bytes: tail -n 50 /s …]"),
    ],
)
def test_output_text_with_cut_says_how_to_read_it(spool: str, spooled: int, line: str) -> None:
    assert output_text("stderr", Output(b"ab", b"ij", 6, spool, spooled)) == f"ab\n{line}\nij"


@pytest.mark.parametrize(
    ("dialect", "tool", "params"),
    [
        ("codex", "shell", {"command": " \t"}),
        ("codex", "exec_command", {"session_id": "s", "cmd": "\n"}),
        ("codex", "shell", {"command": "", "workdir": "/nowhere"}),
        ("copilot", "run_in_terminal", {"command": " "}),
        ("gemini", "run_shell_command", {"command": ""}),
        ("gemini", "run_shell_command", {"command": " ", "directory": "/absolute"}),
    ],
)
def test_command_that_is_blank_is_refused_first(
    workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    error = workspace.call(dialect, tool, params).error
    assert error is not None
    assert error.code == "invalid_parameters"
    assert "Command cannot be empty." in error.message


def test_command_in_absolute_directory_is_refused_by_gemini(workspace: Workspace) -> None:
    params = {"command": "pwd", "directory": workspace.root}
    error = workspace.call("gemini", "run_shell_command", params).error
    assert error is not None
    assert error.message == (
        "Command rejected: pwd\nReason: Directory cannot be absolute. Must be relative to the project root directory."
    )
