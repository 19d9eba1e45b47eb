"""Validates the first call of every contract case: the verdict must agree with the call, and nothing may change."""

import os
from pathlib import Path

import pytest
from support import contract_cases

from handrail import Workspace

CASES = contract_cases.without_ordinary_user(contract_cases.read_all())
FOUND_BY_RUNNING = {
    "approval_denied",
    "cancelled",
    "command_failed",
    "command_not_found",
    "command_not_started",
    "network_error",
    "session_ended",
    "shell_ended",
    "timeout",
}
"""Errors that only the effects of a call can show."""


def _tree(root: Path) -> dict[str, tuple[int, int]]:
    """Return mode and time of change of everything below a directory."""
    found = (os.path.join(top, name) for top, below, files in os.walk(root) for name in (*below, *files))
    return {path: (os.lstat(path).st_mode, os.lstat(path).st_mtime_ns) for path in found}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_validate_agrees_with_call_and_changes_nothing(case: contract_cases.Case, root: Path) -> None:
    contract_cases.build(case, root)
    step, before = case.steps[0], _tree(root)
    params = contract_cases.params_of(step, root)
    with Workspace(str(root), **case.settings) as workspace:
        router = workspace.tools(case.dialect)
        wrong = router.validate(step.tool, params)
        assert _tree(root) == before
        error = router.call(step.tool, params).error
    by_running = error and error.code in FOUND_BY_RUNNING and not case.settings.get("read_only")
    assert wrong == (None if by_running else error)
