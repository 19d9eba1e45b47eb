"""Plays every case of every contract in a layered workspace: no tool may see a difference, and no root may change."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import contract_cases
from support.layers import needs_overlays

from handrail import Workspace

pytestmark = needs_overlays

CASES = contract_cases.without_ordinary_user(contract_cases.read_all())
_AT_ONCE = 60
BATCHES = [
    (dialect, [each for each in CASES if each.dialect == dialect][start : start + _AT_ONCE])
    for dialect in dict.fromkeys(each.dialect for each in CASES)
    for start in range(0, sum(each.dialect == dialect for each in CASES), _AT_ONCE)
]


@pytest.mark.parametrize("cases", [cases for _, cases in BATCHES], ids=[str(cases[0]) for _, cases in BATCHES])
def test_contracts_hold_in_layer_and_root_stays_as_it_is(
    cases: list[contract_cases.Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {}
    for number, case in enumerate(cases):
        home = tmp_path / str(number)
        monkeypatch.setenv("HANDRAIL_STATE_DIR", str(home / "state"))
        monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home / "config"))
        root = home / "workspace"
        root.mkdir(parents=True)
        contract_cases.build(case, root)
        before = list(entries(root))
        try:
            play(case, root)
            assert list(entries(root)) == before, "the root changed"
        except AssertionError as error:
            failed[str(case)] = str(error)[:600]
    assert failed == {}


def play(case: contract_cases.Case, root: Path) -> None:
    with Workspace(str(root), layered=True, **case.settings) as workspace:
        files = Path(f"/proc/self/fd/{workspace._services.boundary.fd}")
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract_cases.params_of(step, root))
            contract_cases.check(step, result.to_dict(), root, files)


def entries(root: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield path, mode, size and time of everything in a directory."""
    for place, directories, files in os.walk(root):
        for name in sorted(directories + files):
            found = os.lstat(f"{place}/{name}")
            yield f"{place}/{name}", found.st_mode, found.st_size, found.st_mtime_ns
