"""Plays every case of every contract in the library and through the commands `run` and `call`.

The commands are played in this process. A sample also runs in separate processes and must give the same bytes.
"""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import contract_cases
from support.command_line import Done, handrail, in_process
from support.ordinary_user import as_ordinary_user

from handrail import Workspace

WRITTEN = contract_cases.read_all()
CASES = contract_cases.without_ordinary_user(WRITTEN)
IN_ANY_SESSION = [case for case in CASES if not case.options.get("one_session")]

_Command = Callable[..., Done]


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
    out = _run(in_process, case, case_root)
    answers = [json.loads(line) for line in out.stdout.split("\n")[:-1]]
    assert [answer["id"] for answer in answers] == list(range(len(case.steps)))
    for number, (step, answer) in enumerate(zip(case.steps, answers, strict=True), 1):
        # All calls have run by now, so only the files of the last call can be checked.
        seen = [each for each in step.expected if number == len(answers) or each.kind not in contract_cases.AFTERWARDS]
        contract_cases.check(replace(step, expected=seen), answer, case_root)


@pytest.mark.parametrize("case", IN_ANY_SESSION, ids=str)
def test_contract_holds_in_call(case: contract_cases.Case, case_root: Path) -> None:
    for step in case.steps:
        out = _call(in_process, case, step, case_root)
        answer: dict[str, Any] = json.loads(out.stdout)
        contract_cases.check(step, answer, case_root)
        timed_out = isinstance(answer["output"], dict) and answer["output"].get("timeout")
        code = answer.get("error", {}).get("code", "timeout" if timed_out else "")
        assert out.returncode == ({"approval_denied": 3, "timeout": 124}.get(code, 1) if code else 0)


def _sample(cases: list[contract_cases.Case]) -> list[contract_cases.Case]:
    """Choose ten of the cases whose answers the contract gives to the last byte."""
    exact = [case for case in cases if all(map(_is_exact, case.steps))]
    return exact[:: len(exact) // 10]


def _is_exact(step: contract_cases.Step) -> bool:
    kinds = {each.kind for each in step.expected}
    return bool(kinds & {"answer", "error", "output", "text"}) and not any("<" in each.body for each in step.expected)


@pytest.mark.parametrize("case", _sample(CASES), ids=str)
def test_run_separate_process_gives_same_bytes(case: contract_cases.Case, root: Path) -> None:
    _assert_same_bytes(case, root, lambda handrail: [_run(handrail, case, root)])


@pytest.mark.parametrize("case", _sample(IN_ANY_SESSION), ids=str)
def test_call_separate_process_gives_same_bytes(case: contract_cases.Case, root: Path) -> None:
    _assert_same_bytes(case, root, lambda handrail: [_call(handrail, case, step, root) for step in case.steps])


def _assert_same_bytes(case: contract_cases.Case, root: Path, play: Callable[[_Command], list[Done]]) -> None:
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


def _run(command: _Command, case: contract_cases.Case, root: Path) -> Done:
    requests = [
        {"tool": step.tool, "params": contract_cases.params_of(step, root), "id": number}
        for number, step in enumerate(case.steps)
    ]
    return command("run", *_flags(case, root), stdin="".join(json.dumps(request) + "\n" for request in requests))


def _call(command: _Command, case: contract_cases.Case, step: contract_cases.Step, root: Path) -> Done:
    params = json.dumps(contract_cases.params_of(step, root))
    return command("call", step.tool, "-", "--json", *_flags(case, root), stdin=params)


def _flags(case: contract_cases.Case, root: Path) -> list[str]:
    flags = [
        part
        for key, value in case.settings.items()
        for part in ([contract_cases.FLAGS[key]] if value is True else [contract_cases.FLAGS[key], value])
    ]
    return ["--dialect", case.dialect, "--root", str(root), *flags]
