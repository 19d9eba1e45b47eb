"""Plays the contracts in a layered workspace: no tool may see a difference, and no root may change.

The library plays every case. The commands and MCP play some cases of every tool; with `HANDRAIL_LONG` they play all
(`make contracts-layered`).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import contract_cases
from support.command_line import in_process
from support.contract_cases import Case, Step
from support.contract_play import check_call, check_run, over_mcp, through_call, through_run
from support.layers import needs_overlays
from support.mcp_client import ERAS, in_memory, talk

from handrail import Workspace

pytestmark = needs_overlays

LONG = bool(os.environ.get("HANDRAIL_LONG"))
CASES = contract_cases.without_ordinary_user(contract_cases.read_all())
_AT_ONCE = 30
Play = Callable[[Case, Path], None]


def in_library(case: Case, root: Path) -> None:
    with opened(case, root) as (workspace, files):
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract_cases.params_of(step, root))
            contract_cases.check(step, result.to_dict(), root, files)


def in_run(case: Case, root: Path) -> None:
    done = through_run(in_process, case, root, "--layered")
    with files_of(case, case.steps[-1], root) as files:
        check_run(done, case, root, files)


def in_call(case: Case, root: Path) -> None:
    if case.options.get("one_session"):
        return
    for step in case.steps:
        done = through_call(in_process, case, step, root, "--layered")
        with files_of(case, step, root) as files:
            check_call(done, step, root, files)


def in_mcp(case: Case, root: Path) -> None:
    with opened(case, root) as (workspace, files):
        server = in_memory(workspace, dialect=case.dialect)
        talk(server, lambda client: over_mcp(client, case, root, files=files), ERAS[-1])


@contextmanager
def opened(case: Case, root: Path) -> Iterator[tuple[Workspace, Path]]:
    """Open the usual layer; also yield the directory in which its files can be seen."""
    with Workspace(str(root), layered=True, **case.settings) as workspace:
        yield workspace, Path(f"/proc/self/fd/{workspace._services.boundary.fd}")


@contextmanager
def files_of(case: Case, step: Step, root: Path) -> Iterator[Path | None]:
    """Open the usual layer again if the step expects something of its files."""
    if not any(block.kind in contract_cases.AFTERWARDS for block in step.expected):
        yield None
        return
    with opened(case, root) as (_, files):
        yield files


def some_of_every_tool(cases: list[Case]) -> list[Case]:
    """Return the first and the last case of every tool."""
    first = {(case.dialect, case.tool): case for case in reversed(cases)}
    last = {(case.dialect, case.tool): case for case in cases}
    return [case for case in cases if case is first[case.dialect, case.tool] or case is last[case.dialect, case.tool]]


def batches() -> Iterator[tuple[Play, list[Case]]]:
    for play in (in_library, in_run, in_call, in_mcp):
        chosen = CASES if LONG or play is in_library else some_of_every_tool(CASES)
        for dialect in dict.fromkeys(case.dialect for case in chosen):
            cases = [case for case in chosen if case.dialect == dialect]
            yield from ((play, cases[start : start + _AT_ONCE]) for start in range(0, len(cases), _AT_ONCE))


BATCHES = [*batches()]


@pytest.mark.parametrize(("play", "cases"), BATCHES, ids=[f"{play.__name__}-{cases[0]}" for play, cases in BATCHES])
def test_contracts_hold_in_layer_and_root_stays_as_it_is(
    play: Play, cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def entries(root: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield path, mode, size and time of everything in a directory."""
    for place, directories, files in os.walk(root):
        for name in sorted(directories + files):
            found = os.lstat(f"{place}/{name}")
            yield f"{place}/{name}", found.st_mode, found.st_size, found.st_mtime_ns
