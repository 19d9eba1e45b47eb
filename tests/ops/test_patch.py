"""Tests what the goldens cannot express: odd names, keys of the caller, limits and search effort."""

import pytest

from handrail.model.faults import BadPatch, HunkNotUnique, NotFound, TooMuchSearch
from handrail.model.limits import Limits
from handrail.ops.patch import PatchedContent, apply, parse

FILES = {"a.txt": PatchedContent(b"one\ntwo\n", 0o640), 'q"uote': PatchedContent(b"one\n", 0o644)}


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def test_patch_lone_surrogate_is_not_text() -> None:
    with pytest.raises(BadPatch) as caught:
        parse("*** Begin Patch\n\ud800\n")
    assert caught.value.facts() == {"why": "not_text", "line": 0, "text": ""}


def test_patch_quoted_name_with_escaped_quote() -> None:
    text = '--- "a/q\\"uote"\n+++ "b/q\\"uote"\n@@ -1 +1 @@\n-one\n+1\n'
    assert [(o.path, o.after) for o in apply(parse(text), FILES.get)] == [('q"uote', PatchedContent(b"1\n", 0o644))]


def test_patch_key_joins_names_of_one_file() -> None:
    text = envelope("*** Update File: a.txt", "@@", "-one", "+1", "*** Update File: /top/a.txt", "@@", "-two", "+2")
    outcomes = apply(parse(text), FILES.get, key=lambda path: path.removeprefix("/top/"))
    assert [(o.path, o.before, o.after) for o in outcomes] == [
        ("a.txt", FILES["a.txt"], PatchedContent(b"1\n2\n", 0o640))
    ]


def test_patch_reads_each_file_once() -> None:
    asked: list[str] = []

    def read(path: str) -> PatchedContent | None:
        asked.append(path)
        return FILES.get(path)

    apply(
        parse(envelope(*("*** Update File: a.txt\n@@\n-one\n+1", "*** Update File: a.txt\n@@\n-1\n+one"))),
        read,
    )
    assert asked == ["a.txt"]


def test_patch_executable_bit_follows_readable_bits() -> None:
    text = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
    assert [o.after for o in apply(parse(text), FILES.get)] == [PatchedContent(b"one\ntwo\n", 0o750)]


def test_patch_new_file_without_mode_has_none() -> None:
    assert [o.after for o in apply(parse(envelope("*** Add File: n", "+x")), FILES.get)] == [
        PatchedContent(b"x\n", None)
    ]


def test_patch_ambiguous_hunk_lists_limited_lines() -> None:
    files = {"a.txt": PatchedContent(b"x\n" * 99, 0o644)}
    with pytest.raises(HunkNotUnique) as caught:
        apply(parse(envelope("*** Update File: a.txt", "@@", "-x", "+y")), files.get, limits=Limits(places=3))
    assert caught.value.facts() == {
        "path": "a.txt",
        "hunk": 1,
        "expected": "x",
        "lines": [1, 2, 3],
        "count": 3,
        "places": "1, 2, 3",
    }


def test_patch_over_search_limit_is_refused() -> None:
    files = {"a.txt": PatchedContent(b"z\n" * 20_000 + b"".join(b"k%d\n" % i for i in range(200)), 0o644)}
    hunks = "".join(f"@@ -1 +1 @@\n-k{i}\n+q\n" for i in range(199, -1, -1))
    with pytest.raises(TooMuchSearch) as caught:
        apply(parse("--- a/a.txt\n+++ b/a.txt\n" + hunks), files.get, limits=Limits(patch_search=10_000))
    assert caught.value.facts() == {"path": "a.txt", "hunk": 1}


@pytest.mark.parametrize(
    ("data", "block"),
    [
        (b"a\n" * 40_000, "-a\n" * 5_000 + "-b\n"),
        (b"a\nb\n" * 20_000, "-a\n-b\n" * 2_000 + "-a\n-a\n"),
        (b"a \n" * 40_000, "-a\n" * 5_000 + "- a\n-b\n"),
        (b"a" * 400_000, "-" + "a" * 50_000 + "b\n"),
    ],
)
def test_patch_search_effort_is_bounded_by_file_size(data: bytes, block: str) -> None:
    limits = Limits(patch_search=40 * 40_000)
    with pytest.raises(Exception, match="HunkNotFound"):
        apply(
            parse(envelope("*** Update File: f", "@@", block + "+c")),
            {"f": PatchedContent(data, 0o644)}.get,
            limits=limits,
        )


def test_patch_missing_file_is_named_by_new_name() -> None:
    with pytest.raises(NotFound) as caught:
        apply(parse("--- old/x\n+++ new/x\n@@ -1 +1 @@\n-a\n+b\n"), FILES.get)
    assert caught.value.path == "new/x"


@pytest.mark.parametrize(
    ("file", "patch", "result"),
    [
        (b"    a\n", "-\ta\n+\tb\n+\t\tc\n", b"    b\n        c\n"),
        (b"\ta\n", "-    a\n+    b\n+          c\n", b"\tb\n\t\t  c\n"),
        (b"\t a\n", "-a\n+b\n+ c\n", b"\t b\n\t  c\n"),
        (b"  a\n", "-        a\n+        b\n+    c\n", b"  b\nc\n"),
        (b"a\n  b\n", " a\n-b\n+c\n+  d\n", b"a\n  c\n    d\n"),
        (b"  a\n", "-\ta\n+ b\n", b" b\n"),
        (b"        a\n    b\n", " a\n- b\n+ c\n+  d\n", b"        a\n    c\n     d\n"),
    ],
)
def test_patch_added_lines_take_indentation_of_file(file: bytes, patch: str, result: bytes) -> None:
    text = envelope("*** Update File: f", "@@", patch.rstrip("\n"))
    assert [o.after for o in apply(parse(text), {"f": PatchedContent(file, 0o644)}.get)] == [
        PatchedContent(result, 0o644)
    ]
