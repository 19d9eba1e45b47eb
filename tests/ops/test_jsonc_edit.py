"""Tests edits of JSON with comments: the new value is there, and every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.ops.jsonc_edit import parse_jsonc, set_jsonc

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
COMMENTED = """{
    // first
    "a": 1, /* in between */
    "list": [
        "x", // why
    ],
    "inner": {"b": 2,},
}
// last
"""


@given(OBJECTS, st.text(max_size=4), st.text(max_size=4), VALUES, st.sampled_from([None, 2, "\t"]))
def test_set_jsonc_changes_exactly_one_value(
    old: dict[str, Any], key: str, inner: str, value: Any, indent: Any
) -> None:
    text = json.dumps(old, indent=indent)
    assert parse_jsonc(text) == old
    assert parse_jsonc(set_jsonc(text, (key,), value)) == {**old, key: value}
    before = old.get(key, {})
    if isinstance(before, dict):
        assert parse_jsonc(set_jsonc(text, (key, inner), value)) == {**old, key: {**before, inner: value}}
    else:
        with pytest.raises(ValueError, match="is not an object"):
            set_jsonc(text, (key, inner), value)


@pytest.mark.parametrize(
    ("path", "value", "lines"),
    [
        (("new",), {"c": 3}, ['    "new": {', '        "c": 3', "    }"]),
        (("list",), ["x", "y"], ['        "y"']),
    ],
)
def test_set_jsonc_adds_lines_and_keeps_all_others(path: tuple[str, ...], value: Any, lines: list[str]) -> None:
    new = set_jsonc(COMMENTED, path, value).split("\n")
    assert [line for line in new if line not in COMMENTED.split("\n")] == lines
    assert [line for line in new if line not in lines] == [each for each in COMMENTED.split("\n") if each not in lines]


@pytest.mark.parametrize(
    ("text", "path", "value", "new"),
    [
        ("", ("a", "b"), 1, '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"a": 1} // end', ("b",), [2], '{"a": 1, "b": [2]} // end'),
        ('{"a": [1, 2 /* two */]}', ("a",), [1, 2, 3], '{"a": [1, 2, /* two */ 3]}'),
        ('{"a": [1,]}', ("a",), [1, 2], '{"a": [1, 2]}'),
        ('{"a": 1}', ("a",), 2, '{"a": 2}'),
        ('{"a": [1]}', ("a",), [1], '{"a": [1]}'),
    ],
)
def test_set_jsonc_small_texts(text: str, path: tuple[str, ...], value: Any, new: str) -> None:
    assert set_jsonc(text, path, value) == new


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 100_000, '{"a":' * 100_000, "-", "1.", "truex", "/* {}", "["),
        *('{"a": 1, "a": 2}', "{a: 1}", '{"a" 1}', '{"a": 1 "b": 2}', "[1 2]", "{} {}", "01", "nan", "{", '"'),
    ],
    ids=lambda text: text[:12],
)
def test_parse_jsonc_bad_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_jsonc(text)
