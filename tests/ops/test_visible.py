"""Tests that text for the user hides nothing: each character is visible or escaped."""

import sys
import unicodedata

import pytest

from handrail.ops.text.display import visible

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
BLANK = [
    *("\xa0", "\u1680", "\u2000", "\u2009", "\u200a", "\u202f", "\u205f", "\u3000"),
    *("\u2800", "\u3164", "\u115f", "\u1160", "\uffa0", "\U0001d159", "\U00013441", "\ufffc"),
    *("\xad", "\u034f", "\u061c", "\u17b4", "\u180e", "\u200b", "\u200d", "\u2060", "\u2061", "\ufeff"),
    *("\u180b", "\ufe0e", "\ufe0f", "\U000e0100", "\U000e01ef", "\U000e0020", "\U000e007f", "\U000e0001"),
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u2028", "\u2029", "\x85", "\x1b", "\r", "\x7f", "\x9b"),
    *("\ue000", "\U000f0000", "\U0010fffd", "\ufffe", "\u0378"),
]
READABLE = [
    "rm -rf 'a b'\n\t# \\x1b",
    "Größe, naïveté, façade, e\u0301",
    "日本語のコメント、한국어 주석",
    "العربية עברית",
    "हिन्दी ไทย မြန်မာ ខ្មែរ",
    "→ ✓ ½ € “quoted” … 🎉👩🏽",
    "⠁⠿ box ─│┌ ␠ ␢",
]


@pytest.mark.parametrize("char", BLANK, ids=ascii)
def test_visible_blank_or_invisible_character_is_escaped(char: str) -> None:
    code = ord(char)
    escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    assert visible(f"rm{char}x") == f"rm{escape}x"


@pytest.mark.parametrize("text", READABLE)
def test_visible_ordinary_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_visible_escapes_every_hidden_category() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    hidden = [char for char in every if unicodedata.category(char) in HIDDEN_CATEGORIES and char not in " \t\n"]
    assert len(hidden) > 100_000
    assert [char for char in hidden if not visible(char).startswith("\\")] == []


def test_visible_escapes_variation_selectors_and_fillers() -> None:
    names = ((char, unicodedata.name(char, "")) for char in map(chr, range(sys.maxunicode + 1)))
    marks = ("VARIATION SELECTOR", "HANGUL FILLER", "SEONG FILLER", "SCRIPT FILLER", "PATTERN BLANK", "GRAPHEME JOINER")
    named = [char for char, name in names if any(mark in name for mark in marks)]
    assert len(named) > 260
    assert [char for char in named if not visible(char).startswith("\\")] == []
