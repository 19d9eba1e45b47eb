"""Every folder under `goldens/patch` is a case: see the README there."""

import json
import os
from pathlib import Path

import pytest
from handrail.faults import Fault
from handrail.ops.patch import Content, apply, parse

GOLDENS = Path(__file__).parent.parent / "goldens" / "patch"
FREEFORM, UNIFIED = (sorted((GOLDENS / form).iterdir()) for form in ("freeform", "unified"))


def tree(root: Path) -> dict[str, bytes]:
    found = (Path(base, name) for base, _, names in os.walk(root) for name in names)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def modes(names: dict[str, bytes], executable: list[str]) -> dict[str, Content]:
    return {name: Content(data, 0o755 if name in executable else 0o644) for name, data in names.items()}


@pytest.mark.parametrize("case", [*FREEFORM, *UNIFIED], ids=lambda case: f"{case.parent.name}/{case.name}")
def test_a_patch_does_what_its_golden_says(case: Path) -> None:
    answer = json.loads((case / "answer.json").read_text())
    before = modes(tree(case / "input"), answer.get("executable_before", []))
    text = (case / "patch.txt").read_bytes().decode(errors="surrogateescape")
    try:
        outcomes = apply(parse(text), before.get)
    except Fault as fault:
        assert {"fault": type(fault).__name__, "facts": fault.facts()} == {
            key: answer.get(key) for key in ("fault", "facts")
        }
        return
    said = [
        {
            "path": outcome.path,
            "bytes": len(outcome.after.data) if outcome.after else 0,
            "created": outcome.created,
            "deleted": outcome.deleted,
            **({"moved_from": outcome.moved_from} if outcome.moved_from else {}),
            **({"moved_to": outcome.moved_to} if outcome.moved_to else {}),
        }
        for outcome in outcomes
    ]
    assert said == answer.get("outcomes")
    after: dict[str, Content | None] = {**before, **{outcome.path: outcome.after for outcome in outcomes}}
    left = {
        name: Content(content.data, content.mode if content.mode is not None else 0o644)
        for name, content in after.items()
        if content
    }
    assert left == modes(tree(case / "expected"), answer.get("executable_after", []))


def test_there_are_goldens_for_both_forms() -> None:
    assert len(FREEFORM) >= 120
    assert len(UNIFIED) >= 80
