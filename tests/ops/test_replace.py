"""Replaces the first occurrence, or an expected number of occurrences, of a text."""

import pytest

from handrail.model.faults import MatchCount, NoMatch, TooLarge
from handrail.model.limits import Limits
from handrail.ops.text.replace import replace_expected, replace_first

DATA = b"one\r\ntwo one\r\none\r\n"


def test_replace_first_changes_one_and_counts_all() -> None:
    assert replace_first("f", DATA, "one\n", "1\n2\n", Limits()) == (b"1\r\n2\r\ntwo one\r\none\r\n", 1, 3)


def test_replace_first_returns_the_line_of_the_first_occurrence() -> None:
    assert replace_first("f", DATA, "two", "2", Limits()).line == 2


def test_replace_first_without_occurrence_raises_no_match() -> None:
    with pytest.raises(NoMatch) as fault:
        replace_first("f", DATA, "TWO one", "", Limits())
    assert (fault.value.line, fault.value.difference) == (2, "case")


def test_replace_expected_changes_all_occurrences() -> None:
    assert replace_expected("f", DATA, "one", "1", 3, Limits()) == b"1\r\ntwo 1\r\n1\r\n"


@pytest.mark.parametrize("expected", [1, 2, 4])
def test_replace_expected_with_another_count_raises_match_count(expected: int) -> None:
    with pytest.raises(MatchCount) as fault:
        replace_expected("f", DATA, "one", "1", expected, Limits())
    assert (fault.value.path, fault.value.expected, fault.value.found) == ("f", expected, 3)


def test_replace_expected_without_occurrence_raises_no_match() -> None:
    with pytest.raises(NoMatch):
        replace_expected("f", DATA, "three", "3", 1, Limits())


def test_replace_beyond_the_edit_limit_raises_too_large() -> None:
    limits = Limits(edit_bytes=20)
    assert replace_first("f", DATA, "one", "12345", limits).data == b"12345\r\ntwo one\r\none\r\n"
    with pytest.raises(TooLarge):
        replace_expected("f", DATA, "one", "12345", 3, limits)
