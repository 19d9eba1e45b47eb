"""Tests exports and scripted sessions of the Claude dialects against the types of the package `anthropic`."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace

anthropic = pytest.importorskip("anthropic")
pydantic = pytest.importorskip("pydantic")


def use(number: int, name: str, params: dict[str, Any]) -> Any:
    """Return a `tool_use` block as the SDK gives it to its caller."""
    return anthropic.types.ToolUseBlock(id=f"toolu_{number}", name=name, input=params, type="tool_use")


def checked(answer: Any) -> Any:
    """Return a `tool_result` block after the SDK's own type has accepted it."""
    types = anthropic.types
    pydantic.TypeAdapter(types.ToolResultBlockParam).validate_python(answer)
    block = pydantic.TypeAdapter(types.ImageBlockParam | types.DocumentBlockParam | types.TextBlockParam)
    for each in [] if isinstance(answer["content"], str) else answer["content"]:
        assert {*block.validate_python(each)} == {*each}  # the type of the result leaves its blocks unchecked
    return answer


@pytest.mark.parametrize("dialect", ["claude", "claude-agent"])
def test_exported_tools_are_accepted_by_sdk_types(root: Path, dialect: str) -> None:
    with Workspace(str(root)) as workspace:
        tools = workspace.tools(dialect).anthropic()
    adapter = pydantic.TypeAdapter(anthropic.types.ToolUnionParam)
    for tool in tools:
        assert {*adapter.validate_python(tool)} == {*tool}
    kinds = [tool.get("type") for tool in tools]
    typed = ["text_editor_20250728", "bash_20250124", "memory_20250818"]
    assert kinds == (typed if dialect == "claude" else [None] * 6)
    assert all(("input_schema" in tool) == (dialect == "claude-agent") for tool in tools)


def play(root: Path, dialect: str, script: list[tuple[str, dict[str, Any], str]]) -> None:
    """Make the calls of a script through the types of the SDK; each answer must contain a text."""
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools(dialect)
        for number, (name, params, expected) in enumerate(script):
            answer = checked(router.call_anthropic(use(number, name, params)))
            assert answer["tool_use_id"] == f"toolu_{number}"
            assert expected in str(answer["content"]), (name, params, answer)


def test_session_of_claude_ends_with_expected_tree(root: Path) -> None:
    editor, file = "str_replace_based_edit_tool", f"{root}/src/app.py"
    note = "/memories/progress.md"
    script: list[tuple[str, dict[str, Any], str]] = [
        ("memory", {"command": "view", "path": "/memories"}, "up to 2 levels deep in /memories"),
        (editor, {"command": "view", "path": str(root)}, "excluding hidden items"),
        (editor, {"command": "create", "path": file, "file_text": "def f():\n    return 1\n"}, "created successfully"),
        (editor, {"command": "view", "path": file, "view_range": [1, 2]}, "     2\t    return 1"),
        (
            editor,
            {"command": "str_replace", "path": file, "old_str": "return 1", "new_str": "return 2"},
            "has been edited",
        ),
        (editor, {"command": "insert", "path": file, "insert_line": 0, "insert_text": "# app"}, "     1\t# app"),
        (
            editor,
            {"command": "str_replace", "path": file, "old_str": "nowhere", "new_str": ""},
            "did not appear verbatim",
        ),
        ("bash", {"command": "cd src && cat app.py"}, "return 2"),
        ("bash", {"command": "mkdir -p out && echo built > out/log.txt && pwd"}, f"{root}/src"),
        ("bash", {"command": "cat none.txt"}, "No such file"),
        ("bash", {"restart": True}, "bash session restarted"),
        ("memory", {"command": "create", "path": note, "file_text": "step 1\n"}, "created successfully"),
        ("memory", {"command": "insert", "path": note, "insert_line": 1, "insert_text": "step 2"}, "has been edited"),
        ("memory", {"command": "rename", "old_path": note, "new_path": "/memories/done.md"}, "Successfully renamed"),
        ("memory", {"command": "view", "path": "/memories/done.md"}, "     2\tstep 2"),
    ]
    assert len(script) == 15
    play(root, "claude", script)
    assert {str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()} == {
        "src/app.py": "# app\ndef f():\n    return 2\n",
        "src/out/log.txt": "built\n",
    }


def test_session_of_claude_agent_ends_with_expected_tree(root: Path) -> None:
    (root / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01")
    script: list[tuple[str, dict[str, Any], str]] = [
        ("glob", {"pattern": "**/*.py"}, "no matches"),
        ("write", {"file_path": "src/a.py", "content": "A = 1\nB = 1\n"}, "wrote 12 bytes to src/a.py"),
        ("write", {"file_path": "src/b.py", "content": "from a import A\n"}, "wrote 16 bytes"),
        ("read", {"file_path": f"{root}/src/a.py", "view_range": [2, 2]}, "B = 1"),
        ("edit", {"file_path": "src/a.py", "old_string": "1", "new_string": "2"}, "appears 2 times"),
        (
            "edit",
            {"file_path": "src/a.py", "old_string": "1", "new_string": "2", "replace_all": True},
            "(2 replacement(s))",
        ),
        ("grep", {"pattern": "A", "path": "src"}, f"{root}/src/a.py:1:A = 2"),
        ("glob", {"pattern": "*.py", "path": "src"}, f"{root}/src/b.py"),
        ("read", {"file_path": "dot.png"}, "image/png"),
        ("read", {"file_path": "../secret"}, "outside the session's working directory"),
        ("bash", {"command": "cd src; export MODE=test"}, ""),
        ("bash", {"command": "echo $MODE > mode.txt; pwd"}, f"{root}/src"),
        ("bash", {"command": "rm b.py; false"}, "exit code 1"),
        ("bash", {"restart": True}, "bash session restarted"),
        ("bash", {"command": "ls src"}, "a.py\nmode.txt"),
    ]
    assert len(script) == 15
    play(root, "claude-agent", script)
    (root / "dot.png").unlink()
    assert {str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()} == {
        "src/a.py": "A = 2\nB = 2\n",
        "src/mode.txt": "test\n",
    }
