"""Tests every folder under `goldens/patch`; the README there describes the format."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.model.faults import Fault
from handrail.ops.patch import PatchedContent, PatchOutcome, apply, parse

GOLDENS = Path(__file__).parent.parent / "goldens" / "patch"
INDEX = GOLDENS / "index.txt"
FREEFORM, UNIFIED = (sorted((GOLDENS / form).iterdir()) for form in ("freeform", "unified"))


def tree(root: Path, executable: list[str]) -> dict[str, PatchedContent]:
    paths = (Path(base, name) for base, _, names in os.walk(root) for name in names)
    named = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    return {name: PatchedContent(data, 0o755 if name in executable else 0o644) for name, data in named.items()}


def answer_to(text: str, before: dict[str, PatchedContent]) -> tuple[dict[str, Any], dict[str, PatchedContent]]:
    """Return the answer to a patch, and the tree after it."""
    try:
        outcomes = apply(parse(text), before.get)
    except Fault as fault:
        return {"fault": type(fault).__name__, "facts": fault.facts()}, {}
    after = dict(before)
    for outcome in outcomes:
        after.pop(outcome.path, None)
        if outcome.after:
            mode = 0o644 if outcome.after.mode is None else outcome.after.mode
            after[outcome.path] = PatchedContent(outcome.after.data, mode)
    return {"outcomes": list(map(said, outcomes))}, after


def said(outcome: PatchOutcome) -> dict[str, Any]:
    moves = {"moved_from": outcome.moved_from, "moved_to": outcome.moved_to}
    return {
        "path": outcome.path,
        "bytes": len(outcome.after.data) if outcome.after else 0,
        "created": outcome.created,
        "deleted": outcome.deleted,
        **{key: name for key, name in moves.items() if name},
    }


@pytest.mark.parametrize("case", [*FREEFORM, *UNIFIED], ids=lambda case: f"{case.parent.name}/{case.name}")
def test_patch_result_matches_golden(case: Path) -> None:
    expected = json.loads((case / "answer.json").read_text())
    before = tree(case / "input", expected.pop("executable_before", []))
    after = tree(case / "expected", expected.pop("executable_after", []))
    text = (case / "patch.txt").read_bytes().decode(errors="surrogateescape")
    assert answer_to(text, before) == (expected, after)


def test_goldens_match_index() -> None:
    assert [f"{case.parent.name}/{case.name}" for case in [*FREEFORM, *UNIFIED]] == INDEX.read_text().splitlines()
