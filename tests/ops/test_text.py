"""Tests edits of text that change no byte outside the edited span."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.model.files import File, MakeDirectory, Put, Remove, Version
from handrail.ops.text.buffer import TextBuffer, find_all, split_lines, to_lf
from handrail.ops.text.change_preview import change_diff
from handrail.ops.text.display import duration, fold, one_line, visible


@pytest.mark.parametrize(
    ("data", "newline"),
    [
        (b"", "\n"),
        (b"one", "\n"),
        (b"one\ntwo\n", "\n"),
        (b"one\r\ntwo\r\n", "\r\n"),
        (b"one\r\ntwo\n", "\n"),
        (b"one\r\ntwo\r\nthree\n", "\r\n"),
        (b"one\rtwo\r", "\n"),
    ],
)
def test_text_buffer_newline_is_most_common(data: bytes, newline: str) -> None:
    assert TextBuffer.of(data).newline == newline


@pytest.mark.parametrize(
    ("data", "spans", "after"),
    [
        (b"one\r\ntwo\r\n", [(0, 3, "1")], b"1\r\ntwo\r\n"),
        (b"one\r\ntwo\r\n", [(3, 4, "\n\n")], b"one\r\n\r\ntwo\r\n"),
        (b"one\r\ntwo\r\n", [(3, 4, "")], b"onetwo\r\n"),
        (b"one\r\ntwo\r\n", [(3, 4, " "), (7, 8, "")], b"one two"),
        (b"one\r\ntwo\r\n", [(0, 8, "a\r\nb\nc")], b"a\r\nb\r\nc"),
        (b"one\ntwo\n", [(0, 3, "a\r\nb")], b"a\nb\ntwo\n"),
        (b"one", [(0, 3, "a\r\nb\n")], b"a\r\nb\n"),
        (b"one\ntwo\r\nthree\n", [(4, 7, "2\n2")], b"one\n2\n2\r\nthree\n"),
        (b"\xef\xbb\xbfa\xffb", [(1, 2, "A")], b"\xef\xbb\xbfA\xffb"),
        (b"\r\r\n\n\r", [(1, 2, "")], b"\r\n\r"),
        (b"", [(0, 0, "new\n")], b"new\n"),
        (b"same", [], b"same"),
    ],
)
def test_text_buffer_replace_changes_only_spans(data: bytes, spans: list[tuple[int, int, str]], after: bytes) -> None:
    assert TextBuffer.of(data).replace(spans) == after


@given(st.binary(max_size=60), st.data())
def test_text_buffer_any_bytes_survive_around_span(data: bytes, draw: st.DataObject) -> None:
    text = TextBuffer.of(data)
    start = draw.draw(st.integers(0, len(text.lf)))
    end = draw.draw(st.integers(start, len(text.lf)))
    before, after = text.replace([(start, len(text.lf), "")]), text.replace([(0, end, "")])
    assert data.startswith(before)
    assert data.endswith(after)
    assert TextBuffer.of(before).lf == text.lf[:start]
    assert text.replace([(start, end, "NEW")]) == before + b"NEW" + after
    assert text.replace([]) == data


def test_text_buffer_line_of_counts_from_one() -> None:
    text = TextBuffer.of(b"one\r\ntwo\r\n\r\nfour")
    assert [text.line_of(text.lf.index(word)) for word in ("one", "two", "four")] == [1, 2, 4]


def test_find_all_apart_or_overlapping() -> None:
    assert find_all("aaaa", "aa") == [0, 2]
    assert find_all("aaaa", "aa", overlapping=True) == [0, 1, 2]
    assert find_all("abab", "x") == []
    assert find_all("abab", "ab") == [0, 2]


def test_to_lf_converts_crlf_only() -> None:
    assert to_lf("a\r\nb\rc\n") == "a\nb\rc\n"
    assert to_lf("plain") == "plain"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb\n", ["a\rb"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"]),
        ("a\r", ["a"]),
    ],
)
def test_split_lines_only_lf_and_crlf_end_line(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


# ── changes ──


def test_change_diff_odd_path_is_quoted_once() -> None:
    base = File("f", b"x\n", Version(0, 0, 0, 0, 0), 0o644)
    for path in ("a\nb", '"a\\nb"'):
        assert '\n+++ "b/a\\nb"\n' in change_diff(Put(path, b"x\n"))
        assert change_diff(Remove(path)) == 'deleted "a\\nb"\n'
        assert '\n--- "a/a\\nb"\n' in change_diff(Remove(path, base))
        assert change_diff(MakeDirectory(path)) == 'new directory "a\\nb"\n'


# ── display ──


def test_visible_escapes_invisible_characters() -> None:
    assert visible("tab\tline\nplain é 日本 😀") == "tab\tline\nplain é 日本 😀"
    assert visible("\0\x07\x1b[31m\x7f\x9b\r") == "\\x00\\x07\\x1b[31m\\x7f\\x9b\\x0d"
    assert visible("\u200b\u202e\u2066\ufeff\u2028") == "\\u200b\\u202e\\u2066\\ufeff\\u2028"
    assert visible("\xad\u061c\u3164\ufe0f\U000e0041") == "\\xad\\u061c\\u3164\\ufe0f\\U000e0041"
    assert visible("\udcff\ud800") == "\\xff\\ud800"


def test_one_line_escapes_and_shortens() -> None:
    assert one_line("a\nb\tc") == "a\\nb\\tc"
    assert one_line("x" * 300) == "x" * 199 + "…"
    assert one_line("x" * 10, width=10) == "x" * 10


def test_fold_cuts_long_text_in_middle() -> None:
    lines = [str(n) for n in range(20)]
    assert fold(lines, 20) == lines
    assert fold(["x" * 4000], 10, 80) == [f"{'x' * 80} … 3840 characters not shown … {'x' * 80}"]
    assert fold(["y" * 800], 10, 80) == ["y" * 800]
    wide = [f"{n:160}" for n in range(20)]
    assert fold(wide, 10, 80) == [*wide[:3], "… 16 lines not shown …", wide[19]]
    assert fold(lines, 10) == ["0", "1", "2", "3", "4", "5", "… 11 lines not shown …", "17", "18", "19"]


def test_duration_is_short() -> None:
    assert [duration(ms) for ms in (0.04, 0.94, 1, 5.4, 9999, 12_345)] == [
        "0.0ms", "0.9ms", "1ms", "5ms", "9999ms", "12.3s",
    ]  # fmt: skip
