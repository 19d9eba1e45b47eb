"""Tests that the page of answers is what the message tables say, and that every answer has a suggestion."""

import re

from support.answer_tables import PAGE, page
from support.documents import table

from handrail.dialects import NAMES


def test_answers_page_equals_generated_page() -> None:
    assert PAGE.read_text() == page(), "run: cd tests && ../.venv/bin/python -m support.answer_tables"


def test_answers_page_has_suggestion_for_every_answer() -> None:
    sections = re.split(r"^## ", page(), flags=re.MULTILINE)[1:]
    assert [each.split("\n")[0] for each in sections] == [*NAMES]
    for each in sections:
        rows = table(each)
        assert len(rows) > 40
        assert [row for row in rows if not all(cell.strip() for cell in row)] == []
