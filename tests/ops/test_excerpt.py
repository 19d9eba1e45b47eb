import pytest

from handrail.ops.search.excerpt import excerpt

CASES = [
    ("short", 0, "short", False),
    ("line end\r", 0, "line end", False),
    ("0123456789ab", 0, "0123456789…", True),
    ("0123456789abcdef", 8, "…6789abcdef", True),
    ("0123456789abcdefgh", 8, "…6789abcdef…", True),
    ("éééééééé", 7, "…éé" + "éé…", True),
    ("aéééééééé", 0, "aéééé…", True),
    ("\udc80" * 12, 0, "\udc80" * 7 + "…", True),
]


@pytest.mark.parametrize(("line", "column", "shown", "cut"), CASES)
def test_excerpt_long_line_is_cut_around_match(line: str, column: int, shown: str, cut: bool) -> None:
    assert excerpt(line.encode(errors="surrogateescape"), column, 10) == (shown, cut)
