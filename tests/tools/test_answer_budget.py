"""Checks that answers stay within their budget, keep their form, and that the rest can be read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.dialects.output_types import ShellOutcome
from handrail.model.effects import Effect
from handrail.ops.list_cut import cut_lists

NAMED = re.compile(r"(?:tail|head) -n 50 ([\w./-]+)")
BOUNDED = "the setting answer_tokens"
OWN = "a limit of the reference or the seed, which the answer names"
CONTENT = "content that is asked for: a page of lines, an image, a web page"
SHORT = "a few words, or lines that the call itself gives"
TABLE = {
    "gemini": {
        BOUNDED: ["list_directory", "run_shell_command", "search_file_content", "glob"],
        CONTENT: ["read_file"],
        SHORT: ["write_file", "replace"],
    },
    "context": {
        BOUNDED: ["grep", "glob", "search", "list_directory"],
        CONTENT: ["read_file"],
        SHORT: ["create_file", "update_file", "append_file", "replace_in_file", "edit_lines", "delete_file"],
    },
    "copilot": {
        BOUNDED: ["grep_search", "run_in_terminal", "terminal_last_command"],
        OWN: ["list_dir", "file_search"],
        CONTENT: ["read_file", "fetch_webpage"],
        SHORT: ["create_file", "replace_string_in_file", "create_directory"],
    },
    "file": {
        BOUNDED: ["file.list", "file.search"],
        CONTENT: ["file.read"],
        SHORT: ["file.write", "file.patch", "file.delete"],
    },
    "codex": {
        BOUNDED: ["list_dir", "grep_files", "shell", "exec_command", "write_stdin"],
        CONTENT: ["read_file"],
        SHORT: ["apply_patch_json", "apply_patch_freeform"],
    },
    "claude": {OWN: ["str_replace_based_edit_tool", "bash", "memory"]},
    "claude-agent": {OWN: ["bash", "glob", "grep"], CONTENT: ["read"], SHORT: ["write", "edit"]},
    "claude-code": {
        BOUNDED: ["Grep"],
        OWN: ["Bash", "Glob", "WebFetch"],
        CONTENT: ["Read"],
        SHORT: ["Write", "Edit", "NotebookEdit", "TaskStop"],
    },
    "codex-2026": {
        BOUNDED: ["exec_command", "write_stdin"],
        CONTENT: ["view_image"],
        SHORT: ["apply_patch", "request_permissions"],
    },
    "bash": {OWN: ["bash"]},
    "openai": {BOUNDED: ["shell"], SHORT: ["apply_patch"]},
    "gemini-3": {
        BOUNDED: ["list_directory", "read_many_files", "grep_search", "glob", "run_shell_command"],
        CONTENT: ["read_file"],
        SHORT: ["write_file", "replace"],
    },
}
"""For each tool of each dialect: what bounds its answer."""
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


@pytest.mark.parametrize("dialect", NAMES)
def test_table_says_for_every_tool_what_bounds_its_answer(dialect: str) -> None:
    tools, by = load(dialect).tools, TABLE[dialect]
    assert sorted(name for names in by.values() for name in names) == sorted(tools)
    cut_by_router = {tool.name for tool in tools.values() if tool.bounded}
    commands = {tool.name for tool in tools.values() if Effect.RUN in tool.effects} | {"terminal_last_command"}
    assert cut_by_router == {*by.get(BOUNDED, ())} - commands


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
    ("claude-code", "Grep", {"pattern": "needle", "output_mode": "content", "head_limit": 0}),
    ("gemini-3", "list_directory", {"dir_path": "."}),
    ("gemini-3", "glob", {"pattern": "*"}),
    ("gemini-3", "grep_search", {"pattern": "needle"}),
    ("gemini-3", "read_many_files", {"include": ["*"]}),
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
        ("gemini", "run_shell_command", {"command": "seq 1 5000"}, "5000"),
        ("gemini-3", "run_shell_command", {"command": "seq 1 5000"}, "5000"),
        ("copilot", "run_in_terminal", {"command": "seq 1 5000"}, "5000"),
        ("openai", "shell", {"commands": ["true", "seq 1 5000"]}, "5000"),
        ("codex-2026", "exec_command", {"cmd": "seq 1 5000"}, "5000"),
        ("codex-2026", "exec_command", {"cmd": "seq 1 5000", "max_output_tokens": 10}, "5000"),
        ("claude", "bash", {"command": "seq 1 50000"}, "50000"),
        ("claude-agent", "bash", {"command": "seq 1 50000"}, "50000"),
        ("claude-code", "Bash", {"command": "seq 1 50000"}, "50000"),
        ("bash", "bash", {"command": "seq 1 5000"}, "5000"),
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


@pytest.mark.parametrize(
    ("dialect", "tool", "params", "most"),
    [
        ("gemini-3", "run_shell_command", {"command": "seq 1 50000"}, ROOM + 300),
        ("codex-2026", "exec_command", {"cmd": "seq 1 50000"}, ROOM + 400),
        ("openai", "shell", {"commands": ["seq 1 50000"] * 4}, ROOM + 1600),
        ("claude", "bash", {"command": "seq 1 50000"}, 100 * 1024 + 50),
        ("claude-agent", "bash", {"command": "seq 1 50000"}, 100 * 1024 + 50),
        ("claude-code", "Bash", {"command": "seq 1 50000"}, 30_000 + 100),
        ("bash", "bash", {"command": "seq 1 50000"}, 12_500),
    ],
)
def test_command_stays_within_the_limit_in_force(
    small: Workspace, dialect: str, tool: str, params: Any, most: int
) -> None:
    assert most // 2 < size(small.call(dialect, tool, params).output) <= most


def test_output_within_the_limit_of_the_reference_is_whole(small: Workspace) -> None:
    result = small.call("claude", "bash", {"command": "seq 1 10000"})
    assert (len(str(result.output).split()), result.warnings) == (10_000, [])


def test_glob_says_that_it_names_only_the_newest_files(root: Path) -> None:
    for number in range(250):
        (root / f"{number}.txt").touch()
    with Workspace(str(root)) as workspace:
        result = workspace.call("claude-agent", "glob", {"pattern": "*.txt"})
    assert len(str(result.output).split()) == 200
    assert result.warnings == [
        "showing the 200 newest of 250 files; name a directory or a more specific pattern for the rest"
    ]
