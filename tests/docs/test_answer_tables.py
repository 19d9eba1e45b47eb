"""Tests that the page of answers is what the message tables say, and that every answer has a suggestion."""

import re

import pytest
from support.answer_tables import PAGE, answers, page
from support.contract_cases import read_all
from support.documents import table

from handrail.dialects import NAMES, load


def test_answers_page_equals_generated_page() -> None:
    assert PAGE.read_text() == page(), "run: cd tests && ../.venv/bin/python -m support.answer_tables"


def test_answers_page_has_suggestion_for_every_answer() -> None:
    sections = re.split(r"^## ", page(), flags=re.MULTILINE)[1:]
    assert [each.split("\n")[0] for each in sections] == [*NAMES]
    for each in sections:
        rows = table(each)
        assert len(rows) > 30
        assert [row for row in rows if not all(cell.strip() for cell in row)] == []


@pytest.mark.parametrize("name", NAMES)
def test_answers_page_has_every_error_that_the_contract_shows(name: str) -> None:
    listed = {(tool, said.code) for said, tool in answers(load(name))}
    steps = [step for case in read_all() if case.dialect == name for step in case.steps]
    shown = {(step.tool, each.argument) for step in steps for each in step.expected if each.kind == "error"}
    known = {(tool, code) for tool, code in shown if tool in load(name).tools}  # an unknown tool has no row of its own
    assert known - listed == set()
    assert known
