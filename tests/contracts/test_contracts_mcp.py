"""Plays every case of every contract through a real MCP client, in both eras.

In memory each case has its own server, in the newer era. Over stdio one server serves the workspaces of many cases at
once, in both eras; the `workspace` argument chooses one. Cases with settings that no option sets run only in memory, in
both eras.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support import contract_cases
from support.contract_play import over_mcp
from support.mcp_client import ERAS, in_memory, over_stdio, talk

from handrail import Workspace

CASES = contract_cases.without_ordinary_user(contract_cases.read_all())
AT_ONCE, MOST = 4, 200


def _runs_over_stdio(case: contract_cases.Case) -> bool:
    return case.settings.keys() <= contract_cases.FLAGS.keys()


IN_MEMORY = [
    pytest.param(case, era, id=f"{case}-{era}")
    for case in CASES
    for era in ERAS
    if era == ERAS[-1] or not _runs_over_stdio(case)
]


@pytest.mark.parametrize(("case", "era"), IN_MEMORY)
def test_contract_holds_over_mcp_in_memory(case: contract_cases.Case, era: str, root: Path) -> None:
    contract_cases.build(case, root)
    with Workspace(str(root), **case.settings) as workspace:
        talk(in_memory(workspace, dialect=case.dialect), lambda client: over_mcp(client, case, root), era)


def _groups() -> Iterator[Any]:
    """Group the cases that one server can serve: same dialect and same settings."""
    groups: dict[tuple[str, str], list[contract_cases.Case]] = {}
    for case in CASES:
        options = [case.options.get(name) for name in ("patient", "limits", "answer_tokens")]
        alike = json.dumps([case.settings, *options], sort_keys=True)
        groups.setdefault((case.dialect, alike), []).append(case)
    for (dialect, _), cases in groups.items():
        if _runs_over_stdio(cases[0]):
            for start in range(0, len(cases), MOST):
                yield pytest.param(cases[start : start + MOST], id=f"{dialect}-{cases[0].line}-{start}")


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("cases", [*_groups()])
def test_contracts_hold_over_mcp_stdio(cases: list[contract_cases.Case], era: str, tmp_path: Path) -> None:
    roots = {f"case{number}": tmp_path / f"case{number}" for number in range(len(cases))}
    for case, root in zip(cases, roots.values(), strict=True):
        root.mkdir()
        contract_cases.build(case, root)
    flags = [
        part
        for key, value in cases[0].settings.items()
        for part in ([contract_cases.FLAGS[key]] if value is True else [contract_cases.FLAGS[key], str(value)])
    ]
    wanted = [part for root in roots.values() for part in ("--root", root)]
    failed: dict[str, str] = {}

    async def play_all(client: Client) -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def play(case: contract_cases.Case, name: str) -> None:
            async with limiter:
                try:
                    await over_mcp(client, case, roots[name], {"workspace": name} if len(roots) > 1 else {})
                except Exception as error:
                    failed[str(case)] = f"{error!r:.2000}"

        async with anyio.create_task_group() as tasks:
            for case, name in zip(cases, roots, strict=True):
                tasks.start_soon(play, case, name)

    talk(over_stdio(*wanted, *flags, dialect=cases[0].dialect), play_all, era)
    assert failed == {}
