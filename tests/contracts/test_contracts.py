"""Plays every case of every contract in the library and through the commands `run` and `call`.

The commands are played in this process. A sample also runs in separate processes and must give the same bytes.
"""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import contract_cases
from support.command_line import Done, handrail, in_process
from support.contract_play import Command, check_call, check_run, through_call, through_run
from support.ordinary_user import as_ordinary_user

from handrail import Workspace

WRITTEN = contract_cases.read_all()
CASES = contract_cases.without_ordinary_user(WRITTEN)
IN_ANY_SESSION = [case for case in CASES if not case.options.get("one_session")]


@pytest.fixture
def case_root(request: pytest.FixtureRequest, root: Path) -> Path:
    contract_cases.build(request.getfixturevalue("case"), root)
    return root


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_holds_in_library(case: contract_cases.Case, case_root: Path) -> None:
    _assert_case_holds(case, case_root)


def _assert_case_holds(case: contract_cases.Case, root: Path) -> None:
    with Workspace(str(root), **case.settings) as workspace:
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract_cases.params_of(step, root))
            contract_cases.check(step, result.to_dict(), root)


@pytest.mark.parametrize("case", [case for case in WRITTEN if case.options.get("ordinary_user")], ids=str)
def test_contract_holds_for_ordinary_user(case: contract_cases.Case) -> None:
    assert as_ordinary_user(partial(_what_fails, case)) == ""


def _what_fails(case: contract_cases.Case, root: str) -> str:
    contract_cases.build(case, Path(root))
    try:
        _assert_case_holds(case, Path(root))
    except AssertionError as error:
        return str(error) or repr(error)
    return ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_holds_in_run(case: contract_cases.Case, case_root: Path) -> None:
    check_run(through_run(in_process, case, case_root), case, case_root)


@pytest.mark.parametrize("case", IN_ANY_SESSION, ids=str)
def test_contract_holds_in_call(case: contract_cases.Case, case_root: Path) -> None:
    for step in case.steps:
        check_call(through_call(in_process, case, step, case_root), step, case_root)


def _sample(cases: list[contract_cases.Case]) -> list[contract_cases.Case]:
    """Choose ten of the cases whose answers the contract gives to the last byte."""
    exact = [case for case in cases if all(map(_is_exact, case.steps))]
    return exact[:: len(exact) // 10]


def _is_exact(step: contract_cases.Step) -> bool:
    kinds = {each.kind for each in step.expected}
    return bool(kinds & {"answer", "error", "output", "text"}) and not any("<" in each.body for each in step.expected)


@pytest.mark.parametrize("case", _sample(CASES), ids=str)
def test_run_separate_process_gives_same_bytes(case: contract_cases.Case, root: Path) -> None:
    _assert_same_bytes(case, root, lambda handrail: [through_run(handrail, case, root)])


@pytest.mark.parametrize("case", _sample(IN_ANY_SESSION), ids=str)
def test_call_separate_process_gives_same_bytes(case: contract_cases.Case, root: Path) -> None:
    _assert_same_bytes(case, root, lambda handrail: [through_call(handrail, case, step, root) for step in case.steps])


def _assert_same_bytes(case: contract_cases.Case, root: Path, play: Callable[[Command], list[Done]]) -> None:
    """Play a case in a separate process and in this one, each time in the same new directory."""
    state = Path(os.environ["HANDRAIL_STATE_DIR"])
    found = []
    for command in (handrail, in_process):
        contract_cases.build(case, root)
        found.append([(done.returncode, _timeless(done.stdout), done.stderr) for done in play(command)])
        for used in (root, state):
            used.rename(used.with_name(f"{used.name}-{command.__name__}"))
        root.mkdir()
    assert found[0] == found[1]


def _timeless(answers: str) -> str:
    return re.sub(r'("execution_time_ms"): \d+(\.\d+)?', r"\1: 0", answers)
