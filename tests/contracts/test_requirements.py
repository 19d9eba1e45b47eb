"""Checks `contracts/requirements/`: each requirement names cases or tests that exist, or says why there is none."""

import re
from functools import cache
from pathlib import Path

import pytest
from support import contract_cases
from support.documents import HOME, names

PAGES = sorted((contract_cases.CONTRACTS / "requirements").glob("*.md"))
HEADER = ["| number | requirement | proved by |", "|---|---|---|"]
_ROW = re.compile(r"\| (\d+(?:\.\d+)?) \| ([^|]+) \| ([^|]+) \|")


def rows(page: Path) -> list[tuple[str, str, str]]:
    """Return number, requirement and proof of every row of every table, in order."""
    found = []
    for line in page.read_text().split("\n"):
        if line.startswith("|") and line not in HEADER:
            row = _ROW.fullmatch(line)
            assert row, f"{page.name}: {line}"
            found.append((row[1], row[2], row[3]))
    return found


@cache
def _case_names() -> frozenset[str]:
    return frozenset(f"{case.dialect}/{case.tool}: {case.title}" for case in contract_cases.read_all())


def is_there(reference: str, page: Path) -> bool:
    """Look for a case (`tool: title`, or `dialect/tool: title`) or a test (`tests/room/file.py::test`)."""
    if reference.startswith("tests/"):
        file, _, test = reference.partition("::")
        return (HOME / file).is_file() and f"def {test}(" in (HOME / file).read_text()
    full = reference if "/" in reference.partition(": ")[0] else f"{page.stem}/{reference}"
    return full in _case_names()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_requirements_every_row_names_proof_or_reason(page: Path) -> None:
    assert rows(page)
    lacking = [
        number
        for number, _, proof in rows(page)
        if not re.fullmatch(r"none: .{10,}", proof) and not re.fullmatch(r"`[^`]+`(?:, `[^`]+`)*", proof)
    ]
    assert lacking == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_requirements_named_cases_and_tests_exist(page: Path) -> None:
    assert [
        (number, reference)
        for number, _, proof in rows(page)
        if not proof.startswith("none: ")
        for reference in names(proof)
        if not is_there(reference, page)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_requirements_numbers_are_unique_and_ascend(page: Path) -> None:
    numbers = [tuple(map(int, number.split("."))) for number, _, _ in rows(page)]
    assert numbers == sorted(set(numbers))
