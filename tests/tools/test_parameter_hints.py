"""Tests the instructions that correct the parameters of a call."""

from typing import Any

import pytest

from handrail.model.faults import Problem
from handrail.tools.parameter_hints import parameter_hint

KNOWN = {"path": "The file.", "limit": "How many lines."}


@pytest.mark.parametrize(
    ("problem", "given", "hint"),
    [
        (Problem("", "missing", "path"), {}, "Add 'path'"),
        (Problem("", "missing", "path"), {"file_path": "a"}, "Rename 'file_path' to 'path' (The file)"),
        (Problem("", "unknown", "path, limit", "colour"), {"colour": 1}, "Remove 'colour'"),
        (Problem("limit", "type", "integer", "string"), {"limit": "5"}, 'Send "limit": 5'),
        (
            Problem("limit", "type", "integer", "string"),
            {"limit": "five"},
            "Send 'limit' as integer, not as text of one",
        ),
        (Problem("limit", "minimum", "1", "0"), {"limit": 0}, 'Send "limit": 1, or more'),
        (Problem("limit", "maximum", "9", "10"), {"limit": 10}, 'Send "limit": 9, or less'),
        (Problem("path", "type", "string", "integer"), {"path": 7}, 'Send "path": "7"'),
        (Problem("mode", "choice", "slice, indent", "Slice"), {"mode": "Slice"}, 'Send "mode": "slice"'),
        (Problem("mode", "choice", "slice, indent", "zzz"), {"mode": "zzz"}, "Use one of: slice, indent"),
        (Problem("", "type", "object", "array"), {}, "Send the parameters as an object: path, limit"),
    ],
)
def test_parameter_hint_says_what_to_send(problem: Problem, given: dict[str, Any], hint: str) -> None:
    assert parameter_hint({"problems": [problem], "params": given, "known": KNOWN}) == hint


def test_parameter_hint_without_known_names_adds_missing_name() -> None:
    facts = {"problems": [Problem("", "missing", "task_id")], "params": {"task_id": ""}, "known": {}}
    assert parameter_hint(facts) == "Add 'task_id'"
