"""Plays a session of claude-code through the types of the package `anthropic`, from tool_use to tool_result blocks."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.media import image_file

from handrail import Workspace

anthropic = pytest.importorskip("anthropic")
pydantic = pytest.importorskip("pydantic")


def notebook(*sources: str) -> str:
    cells = [
        {"cell_type": "code", "execution_count": 1, "id": f"c{n}", "metadata": {}, "outputs": [], "source": [source]}
        for n, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def script(root: Path) -> list[tuple[str, dict[str, Any], str, bool]]:
    """Return fifteen calls, each with a part of its answer and whether it is an error."""
    app, book = f"{root}/src/app.py", f"{root}/n.ipynb"
    edit = {"file_path": app, "old_string": "return 1", "new_string": "return 2"}
    return [
        ("Glob", {"pattern": "**/*.py"}, app, False),
        ("Edit", edit, "File has not been read yet.", True),
        ("Read", {"file_path": app}, "     2\t    return 1", False),
        ("Edit", edit, "has been updated successfully.", False),
        ("Edit", {**edit, "old_string": "nowhere"}, "String to replace not found in file.", True),
        ("Write", {"file_path": f"{root}/src/new.py", "content": "A = 1\nA = 1\n"}, "File created successfully", False),
        (
            "Edit",
            {"file_path": f"{root}/src/new.py", "old_string": "A", "new_string": "B", "replace_all": True},
            "All occurrences were successfully replaced.",
            False,
        ),
        ("Grep", {"pattern": "return", "output_mode": "content", "-A": 1}, f"{app}:2:    return 2", False),
        ("Read", {"file_path": f"{root}/dot.png"}, "'type': 'image'", False),
        ("Read", {"file_path": book}, '<cell id="c1">', False),
        ("NotebookEdit", {"notebook_path": book, "cell_id": "c1", "new_source": "y = 2"}, "Updated cell c1", False),
        (
            "NotebookEdit",
            {"notebook_path": book, "cell_id": "c0", "new_source": "", "edit_mode": "delete"},
            "Deleted cell c0",
            False,
        ),
        ("Bash", {"command": "cd src && python3 -c 'import app; print(app.f())' > out.txt; ls"}, "out.txt", False),
        ("Bash", {"command": "pwd; sleep 1000", "run_in_background": True}, "running in background with ID: 2", False),
        ("TaskStop", {"task_id": "2"}, "Successfully stopped task: 2", False),
    ]


def test_session_of_claude_code_ends_with_expected_tree(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/app.py").write_text("def f():\n    return 1\n")
    (root / "n.ipynb").write_text(notebook("x = 1", "x = 2"))
    image = image_file("PNG", 3, 2)
    (root / "dot.png").write_bytes(image)
    calls = script(root)
    assert len(calls) == 15
    accept = pydantic.TypeAdapter(anthropic.types.ToolResultBlockParam).validate_python
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools("claude-code")
        for number, (name, params, expected, failed) in enumerate(calls):
            use = anthropic.types.ToolUseBlock(id=f"toolu_{number}", name=name, input=params, type="tool_use")
            answer = accept(router.call_anthropic(use))
            content = answer["content"]  # blocks are checked when they are taken out
            assert expected in (content if isinstance(content, str) else str([*content])), (name, answer)
            assert answer.get("is_error", False) is failed, (name, answer)
    tree = {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}
    assert {name: data for name, data in tree.items() if "__pycache__" not in name} == {
        "src/app.py": b"def f():\n    return 2\n",
        "src/new.py": b"B = 1\nB = 1\n",
        "src/out.txt": b"2\n",
        "dot.png": image,
        "n.ipynb": notebook("y = 2").replace('"c0"', '"c1"').encode(),
    }


def test_exported_tools_of_claude_code_are_accepted_by_sdk_types(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        tools = workspace.tools("claude-code").anthropic()
    adapter = pydantic.TypeAdapter(anthropic.types.ToolUnionParam)
    assert [tool["name"] for tool in tools] == [
        *("Read", "Write", "Edit", "NotebookEdit", "Bash", "TaskStop", "Glob", "Grep", "WebFetch"),
    ]
    for tool in tools:
        assert {*adapter.validate_python(tool)} == {*tool}
