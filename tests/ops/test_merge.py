"""Tests three-way merges: the changes of both sides, or None if they overlap."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.ops.text.merge import merge

CASES = {
    "only ours": (b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nc\n", b"A\nb\nc\n"),
    "only theirs": (b"a\nb\nc\n", b"a\nb\nc\n", b"a\nb\nC\n", b"a\nb\nC\n"),
    "both, apart": (b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\ne\n", b"a\nb\nc\nd\nE\n", b"A\nb\nc\nd\nE\n"),
    "both, the same": (b"a\nb\nc\n", b"a\nX\nc\n", b"a\nX\nc\n", b"a\nX\nc\n"),
    "both, differently": (b"a\nb\nc\n", b"a\nX\nc\n", b"a\nY\nc\n", None),
    "both, side by side": (b"a\nb\nc\nd\n", b"a\nX\nc\nd\n", b"a\nb\nY\nd\n", None),
    "one deletes what the other changes": (b"a\nb\nc\n", b"a\nc\n", b"a\nB\nc\n", None),
    "one deletes, the other inserts elsewhere": (b"a\nb\nc\nd\n", b"b\nc\nd\n", b"a\nb\nc\nd\ne\n", b"b\nc\nd\ne\n"),
    "both insert at one place": (b"a\nb\n", b"a\nX\nb\n", b"a\nY\nb\n", None),
    "both insert the same": (b"a\nb\n", b"a\nX\nb\n", b"a\nX\nb\n", b"a\nX\nb\n"),
    "a missing last newline stays": (b"a\nb\nc", b"A\nb\nc", b"a\nb\nc", b"A\nb\nc"),
    "a last newline that came": (b"a\nb\nc", b"A\nb\nc", b"a\nb\nc\n", b"A\nb\nc\n"),
    "CRLF": (b"a\r\nb\r\nc\r\n", b"A\r\nb\r\nc\r\n", b"a\r\nb\r\nC\r\n", b"A\r\nb\r\nC\r\n"),
    "from nothing": (b"", b"", b"a\n", b"a\n"),
    "binary": (b"a\0\n", b"b\0\n", b"a\0\n", None),
}


@pytest.mark.parametrize("case", CASES)
def test_merge_separate_changes_or_none_on_overlap(case: str) -> None:
    base, ours, theirs, merged = CASES[case]
    assert merge(base, ours, theirs) == merged
    assert merge(base, theirs, ours) == merged


texts = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"x\r"]), max_size=8).map(b"\n".join)


@settings(max_examples=300, deadline=None)
@given(base=texts, ours=texts)
def test_merge_unchanged_side_takes_other_side(base: bytes, ours: bytes) -> None:
    assert merge(base, ours, base) == merge(base, base, ours) == merge(base, ours, ours) == ours
