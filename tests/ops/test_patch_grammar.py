"""Tests the grammar for models: the parser reads every patch that the grammar accepts."""

import json
from pathlib import Path

import pytest
from lark import Lark, UnexpectedInput

from handrail.model.faults import BadPatch
from handrail.ops.patch import parse
from handrail.ops.patch.grammar import GRAMMAR

GOLDENS = sorted((Path(__file__).parent.parent / "goldens" / "patch" / "freeform").iterdir())
LARK = Lark(GRAMMAR, parser="lalr")


def fits(text: str) -> bool:
    try:
        LARK.parse(text)
    except UnexpectedInput:
        return False
    return True


def text_of(golden: Path) -> str:
    return (golden / "patch.txt").read_bytes().decode(errors="surrogateescape")


def test_grammar_accepts_most_goldens() -> None:
    assert sum(fits(text_of(golden)) for golden in GOLDENS) >= 140


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_grammar_accepted_golden_is_parsed(golden: Path) -> None:
    text = text_of(golden)
    if fits(text):
        parse(text)
    if json.loads((golden / "answer.json").read_bytes()).get("fault") == "BadPatch" and not readable(text):
        assert not fits(text)


def readable(text: str) -> bool:
    try:
        parse(text)
    except BadPatch:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*** Begin Patch\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
        "*** Begin Patch\n*** Rename File: a\n*** End Patch",
        "*** Begin Patch\n*** Add File: a\n+x\n",
    ],
)
def test_grammar_rejects_malformed_patch(text: str) -> None:
    assert not fits(text)
