"""Tests odd strings in every string parameter of every tool: each call is answered and does no harm."""

from pathlib import Path

import pytest
from support.odd_calls import Arena

from handrail.dialects import NAMES

TEXTS = (
    *("", "\0", "a\0b", "\ud800", "\udcff", "\ufeff", "\ufeffone", "a\u202eb", "\u2028", "\x1b[31m", "\x7f", "\x85"),
    *("\n", "a\nb", "\r", "\r\n", "\t", " ", "x" * 300, "é" * 5000, "a/" * 3000),
    *("~", "~/x", ".", "..", "../x", "/", "//", "./", "-", "--", "-e", "\\", "a\\/b", "\\1", "#", "!", "'", '"', '"\\'),
    *("*", "**", "[", "]", "[]", "[/]", "[z-a]", "{", "}", "{,}", "{0}", "{path}", "(", "(?", "?", "+", "|", "%s"),
    *("\\x{110000}", "\\p{Foo}", "a{99999999999}", "(?<=a*)b", "$1", "$HOME", "`id`", ";", "&", ">"),
    *("\U0001f600", "e\u0301", "ß", "İ", "a ", "a.", "CON", "C:\\x", "\\\\server\\share", "file:///etc/passwd"),
)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", NAMES)
def test_every_tool_odd_strings_are_answered(dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(elsewhere))
    with Arena(tmp_path, dialect) as arena:
        assert arena.problems(str, TEXTS) == {}
