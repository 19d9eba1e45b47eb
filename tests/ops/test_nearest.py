"""Tests what a failed find reports: the nearest lines, and their first difference."""

import pytest

from handrail.model.limits import Limits
from handrail.ops.text.nearest import Nearest, difference, nearest

CODE = b"""import os

def total(items):
\treturn sum(item.price for item in items)


def mean(items):
\tpass
"""


@pytest.mark.parametrize(
    ("wanted", "found", "kind"),
    [
        (b"a", b"a", ""),
        (b"a", b"a\r", "line_end"),
        (b"a", b"a  ", "trailing_space"),
        (b"  a", b"\ta", "tabs"),
        (b"  a", b"    a", "indentation"),
        (b"f(a)", b"f( a )", "spacing"),
        (b'"a"', "“a”".encode(), "typography"),
        (b"Ab", b"aB", "case"),
        (b'say(\\"a\\")', b'say("a")', "escaping"),
        (b"say( 'A' )", "say(\u2018a\u2019)".encode(), "several"),
        (b"a", b"b", "text"),
        (b"a", b"ab", "text"),
        (b"", b"b", "text"),
    ],
)
def test_difference_names_first_kind(wanted: bytes, found: bytes, kind: str) -> None:
    assert difference(wanted, found) == kind


def test_nearest_escaped_line_breaks_are_found_as_real_ones() -> None:
    found = nearest(b"zero\n  one\ntwo\n", b"one\\ntwo", partial=True)
    assert found == Nearest(2, b"one\\ntwo", b"  one", "line_breaks")


def test_difference_partial_compares_part_of_line() -> None:
    assert difference(b"F(a)", b"x = f(a) + 1") == "text"
    assert difference(b"F(a)", b"x = f(a) + 1", partial=True) == "case"


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        (
            b"def total(items):\n    return sum(item.price for item in items)",
            Nearest(
                4,
                b"    return sum(item.price for item in items)",
                b"\treturn sum(item.price for item in items)",
                "tabs",
            ),
        ),
        (b"def Mean(items):", Nearest(7, b"def Mean(items):", b"def mean(items):", "case")),
        (b"def meant(items):", Nearest(7, b"def meant(items):", b"def mean(items):", "text")),
        (b"\tpass\nmore", Nearest(9, b"more", b"", "missing")),
        (b"nothing of the kind", None),
        (b"\n\n", None),
        (b"import os", Nearest(1, b"import os", b"import os", "")),
    ],
)
def test_nearest_finds_similar_lines(wanted: bytes, answer: Nearest | None) -> None:
    assert nearest(CODE, wanted) == answer


def test_nearest_partial_starts_and_ends_inside_lines() -> None:
    wanted = b"total(items):\n  return sum(item.price"
    assert nearest(CODE, wanted, partial=True) == Nearest(
        4, b"  return sum(item.price", b"\treturn sum(item.price for item in items)", "spacing"
    )


def test_nearest_cuts_long_lines_between_characters() -> None:
    long = "é".encode()
    assert nearest(b"x" + long * 50_000, b"x " + long * 3000) == Nearest(
        1, b"x " + long * 999, b"x" + long * 999, "spacing"
    )


def test_nearest_without_budget_is_none() -> None:
    data = b"aaaa bbbb\n" * 100 + b"unique words here\n"
    assert nearest(data, b"aaaa bbbbb\nunique word here", limits=Limits(nearest_bytes=0)) is None


def test_nearest_empty_file_is_none() -> None:
    assert nearest(b"", b"a line") is None
