"""Plays the file, search and shell contracts inside container images: tools work there as in a directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import contract_cases, environments
from support.contract_cases import Case
from support.layers import needs_overlays

from handrail import Workspace

pytestmark = [needs_overlays, pytest.mark.sandbox, pytest.mark.slow]

ROOT = Path("/testbed")


def usable(case: Case) -> bool:
    """Say whether a case means the same in an image: its user is root there, and no path of the host is known."""
    told = "".join(
        block.body + block.argument for block in (*case.before, *(e for s in case.steps for e in s.expected))
    )
    return "$ROOT" not in "".join(block.body for block in case.before if block.kind == "setup") and "uid" not in told


_OTHER = ("A background process", "read-only place", "guarded", "protected", "Long output", "cut", "whole output")
"""Cases of what differs in an image: its tools for processes, guarded names, and files that lie on the host."""
_EACH = {"bash": 3}
"""Of the cases that start a sandbox each, every third one: they take a second each."""
CASES = [case for case in contract_cases.without_ordinary_user(contract_cases.read_all()) if usable(case)]


def chosen(*dialects: str) -> list[Case]:
    found = [case for case in CASES if case.dialect in dialects and not any(word in case.title for word in _OTHER)]
    return [case for number, case in enumerate(found) if number % _EACH.get(case.dialect, 1) == 0]


@pytest.fixture
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environments.shared_place(tmp_path_factory)


def failures(
    image: str, cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str]]:
    for number, case in enumerate(cases):
        monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / str(number)))
        try:
            play(case, image, tmp_path / f"aside {number}")
        except AssertionError as error:
            yield str(case), str(error)[:600]


def play(case: Case, image: str, aside: Path) -> None:
    """Build a case, with its configuration, beside the image first; then in the image, which is open by then."""
    aside.mkdir()
    contract_cases.build(case, aside)
    with Workspace(image=image, **({"durability": "none"} | case.settings)) as workspace:
        files = Path(f"/proc/self/fd/{workspace._services.boundary.fd}")
        contract_cases.build(case, files)
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract_cases.params_of(step, ROOT))
            contract_cases.check(step, result.to_dict(), ROOT, files)


@pytest.mark.parametrize("dialect", ["file", "bash"])
def test_contracts_hold_in_debian_image(
    dialect: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dict(failures(environments.debian(images), chosen(dialect), tmp_path, monkeypatch)) == {}


@pytest.mark.parametrize("dialect", ["file"])
def test_contracts_hold_in_busybox_image(
    dialect: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dict(failures(environments.busybox(images), chosen(dialect), tmp_path, monkeypatch)) == {}
