"""Plays the file, search and shell contracts inside container images: tools work there as in a directory.

With `HANDRAIL_LONG` every case is a test of its own (`make contracts-images`). Otherwise `file` and
`bash` are played whole, and of other dialects the first case of every tool.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import contract_cases, environments
from support.contract_cases import Case
from support.image_cases import SEARCHES, SHELLS, why_not
from support.layers import needs_overlays

from handrail import Workspace

pytestmark = [needs_overlays, pytest.mark.sandbox, pytest.mark.slow]

LONG = bool(os.environ.get("HANDRAIL_LONG"))
ROOT = Path("/testbed")
IMAGES = {"debian": environments.debian, "busybox": environments.busybox}
CASES = [
    case
    for case in contract_cases.without_ordinary_user(contract_cases.read_all())
    if case.dialect == "file" or SEARCHES.search(case.tool) or SHELLS.search(case.tool)
]


WHOLE = ("file", "bash")
FIRST = {(case.dialect, case.tool): case for case in reversed(CASES)}


def batches() -> Iterator[tuple[str, list[Case]]]:
    """Yield images and the cases that one test plays in them."""
    for image in IMAGES:
        if LONG:
            yield from ((image, [case]) for case in CASES)
            continue
        chosen = [case for case in CASES if case.dialect in WHOLE or case is FIRST[case.dialect, case.tool]]
        for dialect in dict.fromkeys(case.dialect for case in chosen):
            yield image, [case for case in chosen if case.dialect == dialect]


BATCHES = [*batches()]


@pytest.mark.parametrize(("image", "cases"), BATCHES, ids=[f"{image}-{cases[0]}" for image, cases in BATCHES])
def test_contracts_hold_in_image(
    image: str,
    cases: list[Case],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build: Callable[[Path], str] = IMAGES[image]
    shared = environments.shared_place(tmp_path_factory)
    name = build(shared)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(shared / "state of images"))  # every layer is unpacked once
    why = {str(case): why_not(case, name) for case in cases}
    playable = [case for case in cases if not why[str(case)]]
    if not playable:
        pytest.skip("; ".join(why.values()))
    assert dict(failures(name, playable, tmp_path, monkeypatch)) == {}


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
        contract_cases.build(case, files, ROOT)
        for step in case.steps:
            result = workspace.call(case.dialect, step.tool, contract_cases.params_of(step, ROOT))
            contract_cases.check(step, result.to_dict(), ROOT, files)
