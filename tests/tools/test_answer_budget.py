"""Checks that answers stay within their budget, keep their form, and that the rest can be read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Workspace
from handrail.dialects import load
from handrail.dialects.output_types import ShellOutcome
from handrail.model.effects import Effect
from handrail.ops.list_cut import cut_lists

NAMED = re.compile(r"(?:tail|head) -n 50 ([\w./-]+)")
WHOLE = {
    "gemini": {"read_file"},
    "context": {"read_file"},
    "file": {"file.read"},
    "codex": {"read_file"},
    "copilot": {"read_file", "list_dir", "file_search", "terminal_last_command"},
}
"""The tools that read and that the budget does not shorten: contents, and what a seed or the command bounds."""
TOKENS, ROOM = 200, 800

leaves = st.text(max_size=30) | st.integers()
elements = leaves | st.dictionaries(st.sampled_from("ab"), leaves | st.lists(st.fixed_dictionaries({"x": leaves})))
lists = st.lists(elements, max_size=30)
objects = st.fixed_dictionaries({"p": lists}, optional={"q": lists, "r": leaves, "truncated": st.booleans()})


def size(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode())


@given(objects, st.integers(0, 600))
def test_cut_lists_keeps_form_and_order(output: dict[str, Any], room: int) -> None:
    cut = cut_lists(output, room)
    if cut is None:
        return
    assert cut.output.keys() == output.keys()
    assert cut.shown < cut.total
    for name, value in output.items():
        kept = cut.output[name]
        if isinstance(value, list):
            assert len(kept) >= min(1, len(value))
            assert kept[:-1] == value[: max(0, len(kept) - 1)]
        else:
            assert kept == (True if name == "truncated" else value)


@given(st.lists(st.text(max_size=20), min_size=5, max_size=50))
def test_cut_lists_uses_the_room_it_has(names: list[str]) -> None:
    room = size({"entries": names}) - 1
    cut = cut_lists({"entries": names}, room)
    assert cut is not None
    assert size(cut.output) <= room
    assert size({"entries": names[: cut.shown + 1]}) > room - 2  # the last separator


@pytest.mark.parametrize("dialect", WHOLE)
def test_every_tool_that_only_reads_is_bounded_or_whole(dialect: str) -> None:
    readers = [tool for tool in load(dialect).tools.values() if tool.effects == Effect.READ]
    assert {tool.name for tool in readers if not tool.bounded} == WHOLE[dialect]


@pytest.fixture
def small(root: Path) -> Any:
    for number in range(100):
        (root / f"file-{number:03}.txt").write_text(f"needle {number}\n" * 3)
    with Workspace(str(root), approve="auto", answer_tokens=TOKENS) as workspace:
        yield workspace


CALLS = [
    ("codex", "grep_files", {"pattern": "needle"}),
    ("codex", "list_dir", {}),
    ("file", "file.search", {"pattern": "needle", "max_results": 1000, "context_lines": 2}),
    ("file", "file.list", {}),
    ("context", "grep", {"pattern": "needle", "max_results": 500}),
    ("context", "glob", {"pattern": "*"}),
    ("context", "search", {"query": "needle", "max_results": 500}),
    ("context", "list_directory", {}),
    ("gemini", "glob", {"pattern": "*"}),
    ("gemini", "search_file_content", {"pattern": "needle"}),
    ("copilot", "grep_search", {"pattern": "needle", "max_results": 1000}),
]


@pytest.mark.parametrize(("dialect", "tool", "params"), CALLS)
def test_search_or_listing_stays_within_budget(small: Workspace, dialect: str, tool: str, params: Any) -> None:
    result = small.call(dialect, tool, params)
    note = 200  # the line in the text says where the rest is
    assert size(result.output) <= ROOM + (note if isinstance(result.output, str) else 0) + size(result.warnings)
    said = result.output if isinstance(result.output, str) else " ".join(result.warnings)
    assert "not shown" in said or "showing" in said


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("dialect", "tool", "params", "last"),
    [
        ("codex", "shell", {"command": "seq 1 5000"}, "5000"),
        ("codex", "grep_files", {"pattern": "needle", "limit": 999}, "needle 99"),
        ("codex", "exec_command", {"session_id": "s", "cmd": "seq 1 5000"}, "5000"),
        ("gemini", "glob", {"pattern": "*"}, "file-"),
        ("copilot", "grep_search", {"pattern": "needle", "max_results": 1000}, "needle 99"),
    ],
)
def test_rest_of_answer_can_be_read_by_a_command(
    small: Workspace, dialect: str, tool: str, params: Any, last: str
) -> None:
    found = NAMED.search(json.dumps(small.call(dialect, tool, params).to_dict(), ensure_ascii=False))
    assert found is not None
    path = found[1]
    shown = small.call("codex", "shell", {"command": f"tail -n 8 {path}; echo; wc -c < {path}"}).output_as(ShellOutcome)
    assert last in shown["stdout"]
    assert int(shown["stdout"].split()[-1]) > ROOM


def test_read_only_session_gets_no_file_to_read(root: Path) -> None:
    (root / "f").write_text("needle\n" * 500)
    with Workspace(str(root), read_only=True, answer_tokens=TOKENS) as workspace:
        said = workspace.call("gemini", "search_file_content", {"pattern": "needle"}).output
    assert isinstance(said, str)
    assert "of the answer not shown; narrow the call" in said


def test_default_budget_bounds_command_output(workspace: Workspace) -> None:
    shown = workspace.call("codex", "shell", {"command": "seq 1 20000"}).output_as(ShellOutcome)
    assert 39_000 < len(shown["stdout"]) < 40_200
    assert shown["stdout_truncated"]
