"""Checks that a sentence with a limit names the one in force: renders all sentences, and lowers limits in calls."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import fault_samples

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.model.facts import FactRecord
from handrail.model.limits import Limits
from handrail.tools.messages import render
from handrail.tools.tool import Dialect

_LIMITS = ("limit", "seconds", "most", "tokens", "depth")
_LOWERED = 11
_DEFAULTS = {f"{value:g}" for value in Limits() if not isinstance(value, bool) and value > 99}
_EXAMPLE = "view_range: [1, 500]"
"""An example in a sentence of the reference of `claude-agent`; no limit."""
_NUMBER = re.compile(r"\d[\d,_]*")


def _sentences(dialect: Dialect, fault: FactRecord) -> Iterator[tuple[str, str]]:
    for tool in dialect.tools:
        said = render(dialect.tables, tool, fault, fault_samples.CONTEXT)
        yield tool, f"{said.message} {said.suggestion}"


def _changed(fault: FactRecord, name: str) -> FactRecord:
    return type(fault)(**{**fault.facts(), name: type(fault.facts()[name])(_LOWERED)})


@pytest.mark.parametrize("name", NAMES)
def test_sentence_with_a_limit_names_the_lowered_one(name: str) -> None:
    dialect, silent = load(name), []
    for kind in fault_samples.kinds():
        fault = fault_samples.sample(kind)
        for fact in (each for each in _LIMITS if isinstance(fault.facts().get(each), int | float)):
            before, after = (dict(_sentences(dialect, each)) for each in (fault, _changed(fault, fact)))
            silent += [
                (kind.__name__, tool, after[tool])
                for tool in dialect.tools
                if before[tool] != after[tool] and str(_LOWERED) not in after[tool]
            ]
    assert silent == []


@pytest.mark.parametrize("name", NAMES)
def test_sentence_holds_no_default_limit_as_a_fixed_number(name: str) -> None:
    dialect = load(name)
    found = [
        (kind.__name__, tool, text)
        for kind in fault_samples.kinds()
        for tool, text in _sentences(dialect, fault_samples.sample(kind))
        if _DEFAULTS & {each.replace(",", "").replace("_", "") for each in _NUMBER.findall(text.replace(_EXAMPLE, ""))}
    ]
    assert found == []


BIG = "x" * 50 + "\n"
CALLS: list[tuple[str, str, float, str, dict[str, Any], str]] = [
    ("gemini", "gemini_read_bytes", 1000, "read_file", {"absolute_path": "{root}/big"}, "1000 bytes limit"),
    ("gemini-3", "gemini_read_bytes", 1000, "read_file", {"file_path": "big"}, "1000 bytes limit"),
    ("gemini-3", "gemini_3_lines", 7, "read_file", {"file_path": "big"}, "lines 1-7 of 100"),
    ("gemini-3", "gemini_3_matches", 7, "grep_search", {"pattern": "x"}, "limited to 7 matches"),
    ("gemini-3", "command_seconds", 0.5, "run_shell_command", {"command": "sleep 60"}, "0.5 seconds"),
    ("gemini", "command_seconds", 0.5, "run_shell_command", {"command": "sleep 60"}, "after 0.5 seconds"),
    ("bash", "command_seconds", 0.5, "bash", {"command": "sleep 60"}, "longer than 0.5 seconds"),
    ("claude", "command_seconds", 0.5, "bash", {"command": "sleep 60"}, "after 0.5s"),
    ("claude-agent", "command_seconds", 0.5, "bash", {"command": "sleep 60"}, "after 0.5s"),
    ("claude-code", "command_seconds", 0.5, "Bash", {"command": "sleep 60"}, "within 500 ms"),
    ("claude-agent", "claude_agent_bytes", 1000, "read", {"file_path": "big"}, "1000-byte limit"),
    ("claude-agent", "claude_agent_grep_bytes", 1000, "grep", {"pattern": "x"}, "at 1000 bytes"),
    (
        "claude",
        "memory_file_bytes",
        3,
        "memory",
        {"command": "create", "path": "/memories/a", "file_text": "text"},
        "3",
    ),
    ("claude", "edit_bytes", 1000, "str_replace_based_edit_tool", {"command": "view", "path": "{root}/big"}, "1000"),
    ("copilot", "copilot_bytes", 1000, "read_file", {"path": "big"}, "larger than 1000 bytes"),
    ("copilot", "copilot_entries", 1, "list_dir", {"path": "."}, "showing 1 of 2 entries"),
    ("context", "context_file_bytes", 1000, "grep", {"pattern": "y"}, "larger than 1000 bytes"),
    ("context", "context_depth", 1, "grep", {"pattern": "y"}, "stopped 1 level down"),
    ("file", "edit_bytes", 1000, "file.patch", {"path": "big", "patches": [{"find": "x", "replace": "y"}]}, "1000"),
    ("codex", "terminals", 0, "exec_command", {"session_id": "a", "cmd": "true"}, "0 sessions are already open"),
    ("codex-2026", "jobs", 0, "exec_command", {"cmd": "true"}, "0 jobs are already running"),
    ("openai", "edit_bytes", 1000, "apply_patch", {"type": "update_file", "path": "big", "diff": "@@\n-x\n+y"}, "1000"),
]
"""Dialect, limit, lowered value, tool, parameters, and what the answer says."""


@pytest.mark.parametrize(("dialect", "limit", "value", "tool", "params", "said"), CALLS)
def test_answer_names_the_lowered_limit(
    dialect: str, limit: str, value: float, tool: str, params: dict[str, Any], said: str, root: Path
) -> None:
    (root / "big").write_text(BIG * 100)
    (root / "d/e").mkdir(parents=True)
    given = {
        name: each.replace("{root}", str(root)) if isinstance(each, str) else each for name, each in params.items()
    }
    with Workspace(str(root), approve="auto", limits={limit: value}) as workspace:
        result = workspace.call(dialect, tool, given)
    assert said in f"{result.output} {result.error} {result.warnings}"


def test_calls_with_lowered_limits_cover_every_dialect() -> None:
    assert {dialect for dialect, *_ in CALLS} == set(NAMES)
