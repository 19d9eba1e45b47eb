"""Checks the tables of differences in the contract pages against the cases that are compared."""

from typing import Any

import pytest
from references import cases_claude_agent, cases_claude_memory, cases_gemini_3, cases_openai_patch
from references.comparing import listed_differences

REFERENCES: dict[str, Any] = {
    "claude-agent": cases_claude_agent.CASES,
    "claude": cases_claude_memory.CASES,
    "gemini-3": cases_gemini_3.CASES,
    "openai": cases_openai_patch.CASES,
}


@pytest.mark.parametrize("dialect", REFERENCES)
def test_listed_differences_name_cases_and_reasons(dialect: str) -> None:
    listed = listed_differences(dialect)
    assert listed
    assert {*listed} <= {case.name for case in REFERENCES[dialect]}
    assert [name for name, reason in listed.items() if len(reason) < 20 or not reason.endswith(".")] == []
