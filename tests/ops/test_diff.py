"""Tests the diffs that previews and questions show; a printed diff can be applied."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.patch_trees import Tree, patched, two_trees

from handrail.ops.patch import PatchedContent
from handrail.ops.text.line_diff import changes
from handrail.ops.text.unified_diff import unified

LONG = int(os.environ.get("HANDRAIL_LONG", "0"))
bounded = settings(max_examples=LONG or 200, derandomize=not LONG, deadline=None, database=None)


def tree_diff(old: Tree, new: Tree) -> str:
    return "".join(file_diff(name, old.get(name), new.get(name)) for name in sorted({*old, *new}))


def file_diff(name: str, before: PatchedContent | None, after: PatchedContent | None) -> str:
    data = [each.data if each else None for each in (before, after)]
    modes = [each.mode if each else None for each in (before, after)]
    return unified(name, *data, old_mode=modes[0], new_mode=modes[1])


@bounded
@given(two_trees() | two_trees(real=True))
def test_diff_of_two_trees_applies_to_first(trees: tuple[Tree, Tree]) -> None:
    old, new = trees
    text = tree_diff(old, new)
    assert (patched(old, text) if text else old) == new


@bounded
@given(st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=8))
def test_diff_any_bytes_round_trip(pairs: list[tuple[bytes, bytes]]) -> None:
    old = {"f": PatchedContent(b"\n".join(before for before, _ in pairs), 0o644)}
    new = {"f": PatchedContent(b"\n".join(after for _, after in pairs), 0o644)}
    text = tree_diff(old, new)
    assert (patched(old, text) if text else old) == new


@bounded
@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"d"])), st.lists(st.sampled_from([b"a", b"b", b"c", b"e"])))
def test_line_diff_changes_rebuild_new_lines(old: list[bytes], new: list[bytes]) -> None:
    built: list[bytes] = []
    done = 0
    for low, high, new_low, new_high in changes(old, new):
        built += [*old[done:low], *new[new_low:new_high]]
        assert old[done:low] == new[new_low - (low - done) : new_low]
        done = high
    assert [*built, *old[done:]] == new


def test_unified_diff_has_three_context_lines() -> None:
    before = b"".join(b"%d\n" % number for number in range(1, 21))
    changed = before.replace(b"10\n", b"ten\n").replace(b"20\n", b"20")
    assert unified("some file", before, changed) == (
        "diff --git a/some file b/some file\n"
        "--- a/some file\t\n"
        "+++ b/some file\t\n"
        "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
        "@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+20\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (unified("x", b"a\n", b"a\n"), ""),
        (unified("x", b"a\n", b"a\n", old_mode=0o644, new_mode=0o640), ""),
        (unified("x", None, b""), "diff --git a/x b/x\nnew file mode 100644\n"),
        (unified("x", b"", None), "diff --git a/x b/x\ndeleted file mode 100644\n"),
        (
            unified("x", None, b"a\r\n", new_mode=0o755),
            "diff --git a/x b/x\nnew file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\r\n",
        ),
        (
            unified("x", b"a\nb\n", None, old_mode=0o644),
            "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        ),
        (
            unified("x", b"a", b"a", old_mode=0o644, new_mode=0o755),
            "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        ),
        (
            unified("x", b"\xff\n", b"\xfe\n"),
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\udcff\n+\udcfe\n",
        ),
    ],
)
def test_unified_diff_output(printed: str, expected: str) -> None:
    assert printed == expected


def test_line_diff_over_effort_limit_replaces_lines() -> None:
    old, new = [b"a", b"b"] * 4000, [b"b", b"b", b"a"] * 3000
    spans = changes(old, new)
    assert sum(high - low + new_high - new_low for low, high, new_low, new_high in spans) <= len(old) + len(new)
