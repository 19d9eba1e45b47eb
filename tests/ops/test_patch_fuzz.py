"""Tests that a broken patch raises a fault and never another exception, and that names stay as written.

`HANDRAIL_LONG=20000 pytest tests/ops/test_patch_fuzz.py` runs that many cases of each test.
"""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answered import assert_answered

from handrail.model.faults import NotFound
from handrail.ops.patch import PatchedContent, apply, parse

LONG = int(os.environ.get("HANDRAIL_LONG", "0"))
bounded = settings(max_examples=LONG or 300, derandomize=not LONG, deadline=None, database=None)

GOLDENS = Path(__file__).parent.parent / "goldens" / "patch"
PATCHES = [path.read_bytes().decode(errors="surrogateescape") for path in sorted(GOLDENS.glob("*/*/patch.txt"))]
LINES = sorted({line for patch in PATCHES for line in patch.split("\n")})
FILES = {
    name: PatchedContent(data, 0o644)
    for name, data in {
        "a.txt": b"one\ntwo\nthree\n",
        "b.txt": b"b\r\nx",
        "empty": b"",
        "bom": b"\xef\xbb\xbfa\n",
        "raw": b"\xff\0\n\x80",
    }.items()
}


def assert_patch_answered(text: str) -> None:
    assert_answered(lambda: apply(parse(text), FILES.get))


@st.composite
def broken(draw: st.DrawFn) -> str:
    """Draw a golden patch with lines removed, repeated, replaced, inserted or cut."""
    lines = draw(st.sampled_from(PATCHES)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        other = draw(st.sampled_from(LINES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
        new = draw(st.sampled_from(["drop", "twice", "replace", "insert", "cut", "end"]))
        lines[at : at + 1] = {
            "drop": [],
            "twice": [lines[at]] * 2,
            "replace": [other],
            "insert": [lines[at], other],
            "cut": [lines[at][: len(lines[at]) // 2]],
            "end": [lines[at] + "\r"],
        }[new]
        lines = lines or [""]
    return "\n".join(lines)


@bounded
@given(broken())
def test_patch_broken_golden_is_answered(text: str) -> None:
    assert_patch_answered(text)


@bounded
@given(st.lists(st.sampled_from(LINES), max_size=12).map("\n".join))
def test_patch_any_mixture_of_lines_is_answered(text: str) -> None:
    assert_patch_answered(text)


@bounded
@given(st.text(st.characters(), max_size=80))
def test_patch_any_text_is_answered(text: str) -> None:
    assert_patch_answered(text)
    assert_patch_answered("*** Begin Patch\n*** Update File: a.txt\n@@\n" + text + "\n*** End Patch\n")
    assert_patch_answered("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n" + text)


OUTSIDE = {
    "plain": ("--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+y\n", "../x"),
    "deeper": ("--- /dev/null\n+++ b/a/../../x\n@@ -0,0 +1 @@\n+y\n", "a/../../x"),
    "absolute": ("--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+y\n", "/etc/x"),
    "octal": ('--- /dev/null\n+++ "b/\\056\\056/x"\n@@ -0,0 +1 @@\n+y\n', "../x"),
    "git": ("diff --git a/../x b/../x\nnew file mode 100644\n", "../x"),
    "rename": (
        "diff --git a/a.txt b/../x\nsimilarity index 100%\nrename from a.txt\nrename to ../x\n",
        "../x",
    ),
    "copy": ("diff --git a/a.txt b/../x\nsimilarity index 100%\ncopy from a.txt\ncopy to ../x\n", "../x"),
    "source": ("diff --git a/../x b/y\nsimilarity index 100%\ncopy from ../x\ncopy to y\n", "../x"),
    "update": ("--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n", "../x"),
    "delete": ("--- a/../x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "../x"),
    "add": ("*** Begin Patch\n*** Add File: ../x\n+y\n*** End Patch\n", "../x"),
    "move": ("*** Begin Patch\n*** Update File: a.txt\n*** Move to: ../x\n*** End Patch\n", "../x"),
    "remove": ("*** Begin Patch\n*** Delete File: /etc/x\n*** End Patch\n", "/etc/x"),
    "nul": ('*** Begin Patch\n*** Add File: "a\\000b"\n+y\n*** End Patch\n', "a\0b"),
}


@pytest.mark.parametrize(("text", "name"), OUTSIDE.values(), ids=OUTSIDE.keys())
def test_patch_outside_name_reaches_reader_unchanged(text: str, name: str) -> None:
    asked: list[str] = []

    def read(path: str) -> PatchedContent | None:
        asked.append(path)
        return FILES.get(path)

    with suppress(NotFound):
        apply(parse(text), read)
    assert name in asked
