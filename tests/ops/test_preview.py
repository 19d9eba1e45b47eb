"""Tests the diff of a change before it happens."""

import pytest

from handrail.model.files import Change, File, MakeDirectory, Node, Put, Remove, Restore, Version
from handrail.ops.text.change_preview import change_diff

VERSION = Version(0, 0, 0, 0, 0)


def file(data: bytes, path: str = "f", mode: int = 0o644) -> File:
    return File(path, data, VERSION, mode)


def node(data: bytes) -> Node:
    return Node("file", data, 0o644)


@pytest.mark.parametrize(
    ("change", "diff"),
    [
        (Put("f", b"a\n"), "new file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"),
        (Put("f", b"", mode=0o777), "new file mode 100755\n"),
        (Remove("f", file(b"a\n")), "deleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (
            Put("f", b"a\nB\nc\n", file(b"a\nb\nc\n")),
            "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        ),
        (Put("f", b"a\n", file(b"a\n"), 0o755), "old mode 100644\nnew mode 100755\n"),
    ],
)
def test_change_diff_has_git_format(change: Change, diff: str) -> None:
    assert change_diff(change) == f"diff --git a/f b/f\n{diff}"


def test_change_diff_without_change_is_empty() -> None:
    assert change_diff(Put("f", b"a\n", file(b"a\n"))) == ""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Restore("f", None, node(b"\0\1\2")), "Binary file f (3 bytes)\n"),
        (Restore("f", node(b"\0"), node(b"text\n")), "Binary file f (5 bytes)\n"),
        (Remove("f", file(b"\0")), "Binary file f (deleted)\n"),
    ],
)
def test_change_diff_binary_file_shows_only_size(change: Change, line: str) -> None:
    assert change_diff(change) == line


@pytest.mark.parametrize("base", [None, file(b"\0\xff"), file(b"#!/bin/sh\n")])
def test_change_diff_text_with_nul_is_shown(base: File | None) -> None:
    assert "\n+rm -rf ~\n+\0\n" in change_diff(Put("f", b"#!/bin/sh\nrm -rf ~\n\0\n", base))


@pytest.mark.parametrize("path", ["a\nb", '"a\\nb"'])
def test_change_diff_quotes_odd_names_once(path: str) -> None:
    assert '\n+++ "b/a\\nb"\n' in change_diff(Put(path, b"x\n"))
    assert '\n--- "a/a\\nb"\n' in change_diff(Remove(path, file(b"x\n", path)))
    assert change_diff(Remove(path)) == 'deleted "a\\nb"\n'
    assert change_diff(MakeDirectory(path)) == 'new directory "a\\nb"\n'
    assert change_diff(Remove(path, file(b"\0", path))) == 'Binary file "a\\nb" (deleted)\n'
