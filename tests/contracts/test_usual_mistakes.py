"""Makes one usual mistake in every dialect, and checks that the answer says what to do instead."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import tool_scenarios
from support.odd_calls import PLAIN

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.model.effects import Effect
from handrail.tools.tool import Tool, ToolResult

READERS = {name: call for name, call in PLAIN.items() if "src/b.py" in str(call)}
RUNNERS = {
    "bash": ("bash", {"command": "{text}"}),
    "claude": ("bash", {"command": "{text}"}),
    "claude-agent": ("bash", {"command": "{text}"}),
    "claude-code": ("Bash", {"command": "{text}"}),
    "codex": ("shell", {"command": "{text}"}),
    "codex-2026": ("exec_command", {"cmd": "{text}"}),
    "copilot": ("run_in_terminal", {"command": "{text}"}),
    "gemini": ("run_shell_command", {"command": "{text}"}),
    "gemini-3": ("run_shell_command", {"command": "{text}"}),
    "openai": ("shell", {"commands": ["{text}"]}),
}
"""A tool of each dialect with commands."""


def _call(workspace: Workspace, dialect: str, call: tuple[str, Any], word: str, text: str) -> ToolResult:
    tool, params = call
    filled = json.dumps(params).replace("{root}", workspace.root).replace(word, json.dumps(text)[1:-1])
    return workspace.call(dialect, tool, json.loads(filled))


def _hints(result: ToolResult) -> str:
    return f"{result.error.suggestion if result.error else ''}\n{result.warnings}"


def test_every_dialect_reads_or_runs() -> None:
    assert {*READERS, *RUNNERS} == set(NAMES)
    assert set(RUNNERS) == {name for name in NAMES if any(Effect.RUN in t.effects for t in load(name).tools.values())}


@pytest.mark.parametrize("tool", tool_scenarios.every_tool(), ids=lambda tool: f"{tool.dialect}-{tool.name}")
def test_unknown_parameter_is_refused_or_named(tool: Tool, root: Path) -> None:
    tool_scenarios.plant(root)
    params = {**tool_scenarios.example(tool, root), "no_such_parameter": 1}
    with Workspace(str(root), approve="auto") as workspace:
        result = workspace.call(tool.dialect, tool.name, params)
    assert "no_such_parameter" in (_hints(result) if tool.params.unknown_allowed else str(result.error))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("dialect", READERS)
def test_reading_other_encoding_names_it(dialect: str, encoding: str, root: Path) -> None:
    (root / "a.txt").write_bytes("one\nzwei ü\nthree\n".encode(encoding))
    with Workspace(str(root)) as workspace:
        result = _call(workspace, dialect, READERS[dialect], "src/b.py", "a.txt")
    names = {"utf-16": "UTF-16LE", "utf-32": "UTF-32LE"}
    assert f"a.txt is {names.get(encoding, encoding.upper().replace('-LE', 'LE').replace('-BE', 'BE'))} text" in str(
        result.warnings
    )
    assert "binary file:" not in str(result.warnings)


@pytest.mark.parametrize("dialect", READERS)
@pytest.mark.parametrize("content", [b"\x7fELF\0\0\0\1\0\0\2\0\0\0\0\3", b"a\0b\0\0c", "ü\n".encode(), b""])
def test_reading_other_content_names_no_encoding(dialect: str, content: bytes, root: Path) -> None:
    (root / "a.txt").write_bytes(content)
    with Workspace(str(root)) as workspace:
        result = _call(workspace, dialect, READERS[dialect], "src/b.py", "a.txt")
    assert "UTF-16" not in str(result.warnings)


@pytest.mark.parametrize("dialect", READERS)
def test_reading_file_with_final_slash_names_the_file(dialect: str, root: Path) -> None:
    (root / "a.txt").write_text("x\n")
    with Workspace(str(root)) as workspace:
        result = _call(workspace, dialect, READERS[dialect], "src/b.py", "a.txt/")
    assert result.error
    assert "a.txt is a file: to use it, leave out the final slash" in result.error.suggestion


@pytest.mark.sandbox
@pytest.mark.parametrize("dialect", RUNNERS)
def test_command_with_carriage_return_is_reported(dialect: str, root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        returns = _call(workspace, dialect, RUNNERS[dialect], "{text}", "echo a > out.txt\r\necho b")
        plain = _call(workspace, dialect, RUNNERS[dialect], "{text}", "echo a > out.txt\necho '\\r\\n'")
    assert [each for each in returns.warnings if "carriage return" in each]
    assert not [each for each in plain.warnings if "carriage return" in each]
