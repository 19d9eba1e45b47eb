"""Every case of every contract, on every surface."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import contract
import pytest
from faults.ordinary import as_ordinary_user

from handrail import Workspace

CONTRACTS = Path(__file__).parent.parent / "contracts"
WRITTEN = [case for path in sorted(CONTRACTS.glob("*.md")) if path.stem != "README" for case in contract.read(path)]
CASES = [case for case in WRITTEN if not case.options.get("ordinary_user")]
FLAGS = {"approve": "--approve", "read_only": "--read-only"}


@pytest.fixture
def case_root(request: pytest.FixtureRequest, root: Path) -> Path:
    contract.build(request.getfixturevalue("case"), root)
    return root


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_holds_in_the_library(case: contract.Case, case_root: Path) -> None:
    _play(case, case_root)


def _play(case: contract.Case, root: Path) -> None:
    with Workspace(str(root), **_options(case)) as workspace:
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract.params_of(step, root))
            contract.check(step, result.to_dict(), root)


@pytest.mark.parametrize("case", [case for case in WRITTEN if case not in CASES], ids=str)
def test_contract_holds_for_an_ordinary_user(case: contract.Case) -> None:
    assert as_ordinary_user(partial(_what_fails, case)) == ""


def _what_fails(case: contract.Case, root: str) -> str:
    contract.build(case, Path(root))
    try:
        _play(case, Path(root))
    except AssertionError as error:
        return str(error) or repr(error)
    return ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract_holds_in_run(case: contract.Case, case_root: Path) -> None:
    requests = [
        {"tool": step.tool, "params": contract.params_of(step, case_root), "id": number}
        for number, step in enumerate(case.steps)
    ]
    out = _handrail("run", case, case_root, "".join(json.dumps(request) + "\n" for request in requests))
    answers = [json.loads(line) for line in out.stdout.split("\n")[:-1]]
    assert [answer["id"] for answer in answers] == list(range(len(requests)))
    for number, (step, answer) in enumerate(zip(case.steps, answers, strict=True), 1):
        # Only the last call's files can be looked at: all calls have run by now.
        seen = [each for each in step.expected if number == len(answers) or each.kind not in contract.AFTERWARDS]
        contract.check(replace(step, expected=seen), answer, case_root)


@pytest.mark.parametrize("case", [case for case in CASES if not case.options.get("one_session")], ids=str)
def test_contract_holds_in_call(case: contract.Case, case_root: Path) -> None:
    for step in case.steps:
        params = json.dumps(contract.params_of(step, case_root))
        out = _handrail("call", case, case_root, params, step.tool, "-", "--json")
        answer: dict[str, Any] = json.loads(out.stdout)
        contract.check(step, answer, case_root)
        timed_out = isinstance(answer["output"], dict) and answer["output"].get("timeout")
        code = answer.get("error", {}).get("code", "timeout" if timed_out else "")
        assert out.returncode == ({"approval_denied": 3, "timeout": 124}.get(code, 1) if code else 0)


def _options(case: contract.Case) -> dict[str, Any]:
    """Settings; the rest says who can make the case's calls."""
    given = {key: value for key, value in case.options.items() if key not in ("one_session", "ordinary_user")}
    return {"approve": "auto"} | given


def _handrail(
    command: str, case: contract.Case, root: Path, stdin: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    flags = [
        part
        for key, value in _options(case).items()
        for part in ([FLAGS[key]] if value is True else [FLAGS[key], value])
    ]
    return subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "handrail",
            command,
            *arguments,
            "--dialect",
            case.dialect,
            "--root",
            str(root),
            *flags,
        ],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_tool_has_at_least_ten_cases() -> None:
    counts: dict[tuple[str, str], int] = {}
    for case in WRITTEN:
        counts[case.dialect, case.tool] = counts.get((case.dialect, case.tool), 0) + 1
    from handrail.dialects import NAMES, load

    missing = {
        f"{name}.{tool}": counts.get((name, tool), 0)
        for name in NAMES
        for tool in load(name).tools
        if counts.get((name, tool), 0) < 10
    }
    assert missing == {}
