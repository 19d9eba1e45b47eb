"""Compares `apply_patch` of `openai` with the editor in the package `openai-agents`."""

from pathlib import Path

import pytest
from references.cases_openai_patch import CASES, DiffCase
from references.comparing import assert_exactly_listed

from handrail import Workspace

apply_diff = pytest.importorskip("agents.apply_diff").apply_diff


def _reference(case: DiffCase) -> str | None:
    try:
        made: str = apply_diff(case.before or "", case.diff, mode="create" if case.before is None else "default")
    except ValueError:
        return None
    return made


def _handrail(case: DiffCase, root: Path) -> str | None:
    root.mkdir()
    if case.before is not None:
        (root / "f").write_bytes(case.before.encode())
    kind = "create_file" if case.before is None else "update_file"
    with Workspace(str(root), approve="auto") as workspace:
        done = workspace.call("openai", "apply_patch", {"type": kind, "path": "f", "diff": case.diff})
    return (root / "f").read_bytes().decode() if done.success else None


def test_apply_patch_differences_are_exactly_those_listed(tmp_path: Path) -> None:
    found = {}
    for number, case in enumerate(CASES):
        answers = _reference(case), _handrail(case, tmp_path / str(number))
        if answers[0] != answers[1]:
            found[case.name] = answers
    assert_exactly_listed(found, "openai")
