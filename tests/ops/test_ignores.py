import pytest

from handrail.ops.glob.ignore_rules import TooManyRules, compile_ignores

RULES = """\ufeff# comment
*.log
!keep.log
/top
only/
a/b
**/deep/*
x/**
trail  \r
sp\\\x20
\\#hash
{p,q}.c
[bad
lone\\
d?
"""
VERDICTS = [
    ("a.log", False, True), ("d/a.log", True, True), ("keep.log", False, False), ("top", False, True),
    ("d/top", False, None), ("only", True, True), ("only", False, None), ("d/only", True, True), ("a/b", False, True),
    ("d/a/b", False, None), ("deep/x", False, True), ("d/deep/x", False, True), ("x", True, None), ("x/y", False, True),
    ("x/y/z", False, True), ("trail", False, True), ("sp ", False, True), ("#hash", False, True), ("p.c", False, True),
    ("[bad", False, None), ("lone", False, None), ("dé", False, None), ("dx", False, True), ("d\udcff", False, True),
    ("other", False, None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "is_directory", "verdict"), VERDICTS)
def test_ignore_last_matching_line_decides(path: str, is_directory: bool, verdict: bool | None) -> None:
    assert compile_ignores(RULES, 99).verdict(path, is_directory) is verdict


def test_ignore_empty_file_has_no_verdict() -> None:
    assert compile_ignores("", 0).verdict("a", False) is None


def test_compile_ignores_counts_expanded_braces() -> None:
    assert compile_ignores("{a,b}{c,d}\n# no rule\ne\n", 5).rules == 5
    with pytest.raises(TooManyRules):
        compile_ignores("{a,b}{c,d}\ne\n", 4)
