"""Checks that an edit changes no byte outside its span, for any bytes."""

from pathlib import Path
from typing import Any

import pytest
from support.tree import snapshot

from handrail import Workspace

SEPARATORS = "a\u2028b\x85c\x0cd\x1ce\x0bf\u2029g"

# name: file before, find, replace, file after
PATCHES: dict[str, tuple[bytes, str, str, bytes]] = {
    "CRLF stays, and new lines take it": (b"a\r\nb\r\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
    "a find with LF matches CRLF": (b"a\r\nb\r\nc\r\n", "a\nb\n", "z\n", b"z\r\nc\r\n"),
    "a find with CRLF matches CRLF": (b"a\r\nb\r\nc\r\n", "a\r\nb", "z", b"z\r\nc\r\n"),
    "a find with CRLF matches LF": (b"a\nb\nc\n", "a\r\nb", "z", b"z\nc\n"),
    "new CRLF is not doubled": (b"a\r\nb\r\n", "b", "x\r\ny", b"a\r\nx\r\ny\r\n"),
    "mixed ends stay mixed, new ones take the commoner": (
        b"a\r\nb\nc\r\nd\r\n",
        "c",
        "x\ny",
        b"a\r\nb\nx\r\ny\r\nd\r\n",
    ),
    "mostly LF": (b"a\nb\r\nc\n", "a", "x\ny", b"x\ny\nb\r\nc\n"),
    "a lone CR is a character": (b"a\rb\nc\n", "a\rb", "x", b"x\nc\n"),
    "a byte order mark": (b"\xef\xbb\xbffirst\nsecond\n", "first", "1", b"\xef\xbb\xbf1\nsecond\n"),
    "a byte order mark and CRLF": (b"\xef\xbb\xbfa\r\nb\r\n", "a\nb", "c", b"\xef\xbb\xbfc\r\n"),
    "no final newline": (b"a\nb", "b", "c", b"a\nc"),
    "no newline at all": (b"ab", "b", "c", b"ac"),
    "undecodable bytes": (b"\xff\xfe\x80 a \xc3\x28\n", "a", "b", b"\xff\xfe\x80 b \xc3\x28\n"),
    "half a character": (b"\xe2\x82 a \xe2\x82\xac\n", "a", "b", b"\xe2\x82 b \xe2\x82\xac\n"),
    "NUL": (b"\0a\0b\0", "b", "c", b"\0a\0c\0"),
    "no normalisation": ("e\u0301 \u00e9 x".encode(), "x", "\u00e9e\u0301", "e\u0301 \u00e9 \u00e9e\u0301".encode()),
    "composed does not match decomposed": ("e\u0301 \u00e9".encode(), "\u00e9", "x", "e\u0301 x".encode()),
    "no expansion": (b"price: 1\n", "1", r"$1 \1 $& \g<0> $$ {0} %s", rb"price: $1 \1 $& \g<0> $$ {0} %s" + b"\n"),
    "no trimming": (b"  a  \n", "  a  ", " \tb ", b" \tb \n"),
    "other separators end no line": (
        SEPARATORS.encode() + b"\r\n",
        "d",
        "x\ny",
        SEPARATORS.replace("d", "x\r\ny").encode() + b"\r\n",
    ),
}


@pytest.mark.parametrize("case", PATCHES)
def test_patch_changes_its_span_and_nothing_else(workspace: Workspace, root: Path, case: str) -> None:
    before, find, replace, after = PATCHES[case]
    (root / "file").write_bytes(before)
    result = workspace.call("file", "file.patch", {"path": "file", "patches": [{"find": find, "replace": replace}]})
    assert result.success, result
    assert (root / "file").read_bytes() == after


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r\nb\n", "\ufeffa", "e\u0301\u00e9", SEPARATORS, "\0", "$1 \\1\n"])
def test_write_stores_content_exactly(workspace: Workspace, root: Path, text: str) -> None:
    for before in (b"", b"old\r\n"):
        (root / "file").write_bytes(before)
        assert workspace.call("file", "file.read", {"path": "file"}).success
        result = workspace.call("file", "file.write", {"path": "file", "content": text})
        assert result.output == {"success": True, "bytes_written": len(text.encode())}
        assert (root / "file").read_bytes() == text.encode()


def test_patch_does_not_match_or_change_utf_16(workspace: Workspace, root: Path) -> None:
    data = "old text\r\n".encode("utf-16")
    (root / "file").write_bytes(data)
    patches = [{"find": "old", "replace": "new"}]
    result = workspace.call("file", "file.patch", {"path": "file", "patches": patches})
    assert result.error is not None
    assert result.error.code == "find_not_found"
    assert (root / "file").read_bytes() == data


def test_only_line_feeds_count_as_line_ends(workspace: Workspace, root: Path) -> None:
    (root / "file").write_bytes(SEPARATORS.encode() + b"\nlast\r\n")
    output = workspace.call("file", "file.read", {"path": "file"}).output
    assert output == {"content": f"     1\t{SEPARATORS}\n     2\tlast", "total_lines": 2, "truncated": False}


def surrogates() -> list[tuple[str, dict[str, Any]]]:
    lone = "a\ud800"
    return [
        ("file.write", {"path": "file", "content": lone}),
        ("file.patch", {"path": "file", "patches": [{"find": "old", "replace": lone}]}),
        ("file.patch", {"path": "file", "patches": [{"find": "\udcff", "replace": "x"}]}),
    ]


@pytest.mark.parametrize(("tool", "params"), surrogates())
def test_lone_surrogate_is_refused(workspace: Workspace, root: Path, tool: str, params: dict[str, Any]) -> None:
    (root / "file").write_bytes(b"old\xff\n")
    result = workspace.call("file", tool, params)
    assert result.error is not None
    assert result.error.code == "invalid_parameters"
    assert (root / "file").read_bytes() == b"old\xff\n"


def test_patches_of_one_call_apply_all_or_none(workspace: Workspace, root: Path) -> None:
    (root / "file").write_bytes(b"a b c\n")
    patches = [{"find": "a", "replace": "1"}, {"find": "b", "replace": "2"}, {"find": "missing", "replace": "3"}]
    result = workspace.call("file", "file.patch", {"path": "file", "patches": patches})
    assert (result.success, result.files_affected) == (False, [])
    assert (root / "file").read_bytes() == b"a b c\n"


def test_edit_without_change_touches_nothing_and_asks_nothing(root: Path) -> None:
    (root / "file").write_bytes(b"a\r\n")
    before = snapshot(root, precise=True)
    with Workspace(str(root), approve="never") as workspace:
        same = {"path": "file", "patches": [{"find": "a", "replace": "a"}]}
        for tool, params in (("file.patch", same), ("file.write", {"path": "file", "content": "a\r\n"})):
            result = workspace.call("file", tool, params)
            assert (result.success, result.files_affected) == (True, [])
    assert snapshot(root, precise=True) == before
