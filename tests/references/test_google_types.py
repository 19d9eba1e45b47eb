"""Tests exports and a scripted session of `gemini-3` against the types of the package `google-genai`."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace

types = pytest.importorskip("google.genai.types")


def test_exported_tools_are_accepted_by_google_types(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        exported = workspace.tools("gemini-3").gemini()
    tool = types.Tool.model_validate(exported)
    assert [each.name for each in tool.function_declarations] == [
        each["name"] for each in exported["functionDeclarations"]
    ]


def test_session_of_gemini_3_ends_with_expected_tree(root: Path) -> None:
    edit: dict[str, Any] = {"file_path": "src/a.py", "instruction": "Change the value."}
    script: list[tuple[str, dict[str, Any], str]] = [
        ("list_directory", {"dir_path": "."}, "is empty"),
        ("write_file", {"file_path": "src/a.py", "content": "A = 1\nB = 1\n"}, "Successfully created"),
        ("write_file", {"file_path": "src/b.py", "content": "import a\n"}, "Successfully created"),
        ("read_file", {"file_path": "src/a.py", "start_line": 2, "end_line": 2}, "Showing lines 2-2 of 2"),
        ("replace", {**edit, "old_string": "1", "new_string": "2"}, "Expected 1 occurrence but found 2"),
        ("replace", {**edit, "old_string": "1", "new_string": "2", "allow_multiple": True}, "(2 replacements)"),
        ("replace", {**edit, "old_string": "nowhere", "new_string": "x"}, "Could not find an exact match"),
        ("grep_search", {"pattern": "A ="}, "L1: A = 2"),
        ("glob", {"pattern": "**/*.py"}, "Found 2 file(s)"),
        ("read_many_files", {"include": ["src/*.py"]}, "--- End of content ---"),
        ("read_file", {"file_path": "../x"}, "Path not in workspace"),
        ("run_shell_command", {"command": "rm src/b.py && ls src"}, "Output: a.py"),
        ("run_shell_command", {"command": "exit 5"}, "Exit Code: 5"),
        ("write_file", {"file_path": "src/a.py", "content": "A = 3\n"}, "Successfully overwrote"),
        ("list_directory", {"dir_path": "src"}, "a.py (6 bytes)"),
    ]
    assert len(script) == 15
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools("gemini-3")
        for number, (name, args, expected) in enumerate(script):
            call = types.FunctionCall(id=str(number), name=name, args=args)
            answer = types.Part.model_validate(router.call_gemini(call)).function_response
            assert answer.id == str(number)
            assert expected in str(answer.response), (name, args, answer)
    found = {str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()}
    assert found == {"src/a.py": "A = 3\n"}
