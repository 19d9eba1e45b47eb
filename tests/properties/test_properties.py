"""Tests any text with any edit, and any sequence of commits with failures."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fault_injection import Act, ShortThenFull, failing, faults, short
from support.tree import Tree, snapshot
from support.writer import commit

from handrail import Workspace
from handrail.model.faults import Fault
from handrail.model.files import Change, MakeDirectory, Put, Remove
from handrail.ops.text.buffer import TextBuffer

LONG = bool(os.environ.get("HANDRAIL_LONG"))


def examples(count: int) -> settings:
    return settings(max_examples=count * 10 if LONG else count, deadline=None, derandomize=not LONG)


MARK = "<\u00e9\n>"

pieces = st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"\xff", b"\xe2\x82", "\u2028\x85\ufeff".encode(), b"\0", b" "])
contents = st.lists(pieces | st.binary(max_size=8), max_size=30).map(b"".join)
texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\n\r<>"), max_size=30)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    before = dict(os.environ)
    os.environ["HANDRAIL_STATE_DIR"] = str(tmp_path_factory.mktemp("state"))
    os.environ["HANDRAIL_CONFIG_DIR"] = str(tmp_path_factory.mktemp("config"))
    root = str(tmp_path_factory.mktemp("workspace"))
    with Workspace(root, approve="auto", durability="none", log_level="off") as opened:
        os.environ.clear()
        os.environ.update(before)
        yield opened


def commoner_end(data: bytes) -> str:
    crlf = data.count(b"\r\n")
    return "\r\n" if crlf * 2 > data.count(b"\n") else "\n"


@examples(250)
@given(head=contents, tail=contents, end=st.sampled_from(["\n", "\r\n"]), new=texts)
def test_file_patch_keeps_every_byte_outside_match(
    workspace: Workspace, head: bytes, tail: bytes, end: str, new: str
) -> None:
    before = head + MARK.replace("\n", end).encode() + tail
    if TextBuffer.of(before).lf.count(MARK) != 1:
        return
    path = Path(workspace.root) / "file"
    path.write_bytes(before)
    assert workspace.call("file", "file.read", {"path": "file"}).success
    result = workspace.call("file", "file.patch", {"path": "file", "patches": [{"find": MARK, "replace": new}]})
    assert result.success
    if commoner_end(before) == "\r\n":
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    assert path.read_bytes() == head + new.encode() + tail


@examples(400)
@given(data=contents, cuts=st.lists(st.integers(0, 400), max_size=6), new=texts)
def test_text_buffer_replace_keeps_bytes_outside_spans(data: bytes, cuts: list[int], new: str) -> None:
    text = TextBuffer.of(data)
    edges = sorted(min(cut, len(text.lf)) for cut in cuts[: len(cuts) // 2 * 2])
    spans = list(zip(edges[::2], edges[1::2], strict=True))
    raw_edges = positions(text.raw)
    put = new.replace("\r\n", "\n").replace("\n", "\r\n") if commoner_end(data) == "\r\n" else new
    expected, at = "", 0
    for start, end in spans:
        expected += text.raw[at : raw_edges[start]] + put
        at = raw_edges[end]
    expected += text.raw[at:]
    assert text.replace([(start, end, new) for start, end in spans]) == expected.encode(errors="surrogateescape")


def positions(raw: str) -> list[int]:
    """Map each position in the text with LF line ends, and its end, to a position in the raw text."""
    found, at = [], 0
    while at < len(raw):
        found.append(at)
        at += 2 if raw.startswith("\r\n", at) else 1
    return [*found, len(raw)]


@examples(200)
@given(data=contents)
def test_text_buffer_without_edits_returns_same_bytes(data: bytes) -> None:
    text = TextBuffer.of(data)
    assert text.replace([]) == data
    assert text.lf.count("\n") == data.count(b"\n")


PATHS = ["a", "b", "d/x", "d/y", "d/e/z", "new/deep/er", "a/below"]
changes = st.tuples(
    st.sampled_from(["put", "put", "remove", "directory"]), st.sampled_from(PATHS), st.binary(max_size=20)
)
acts: st.SearchStrategy[Callable[[], Act]] = st.sampled_from(
    [lambda: failing(errno.EIO), lambda: failing(errno.ENOSPC), lambda: short, ShortThenFull]
)
steps = st.tuples(
    st.lists(changes, min_size=1, max_size=4, unique_by=lambda change: change[1]),
    st.integers(1, 60),
    acts,
    st.booleans(),
)


@examples(120)
@given(st.lists(steps, min_size=1, max_size=5))
def test_commit_any_failure_leaves_old_or_new_tree(sequence: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as root:
        for name in ("b", "d/x", "d/e/z"):
            os.makedirs(os.path.dirname(f"{root}/{name}"), exist_ok=True)
            Path(root, name).write_bytes(b"first")
        for wanted, at, act, lasting in sequence:
            before = snapshot(root)
            with Workspace(root, approve="auto", log_level="off") as workspace:
                real = prepare(workspace, wanted)
                with faults(at, act(), lasting=lasting):
                    done = is_committed(workspace, real)
            possible = [after(before, real)] if done else [before, after(before, real)] if lasting else [before]
            with Workspace(root, approve="auto", log_level="off"):
                assert snapshot(root) in possible


def prepare(workspace: Workspace, wanted: list[tuple[str, str, bytes]]) -> list[Change]:
    return [make(workspace, *each) for each in wanted]


def make(workspace: Workspace, kind: str, path: str, data: bytes) -> Change:
    if kind == "directory":
        return MakeDirectory(path)
    try:
        base = workspace._services.reader.read_if_there(path)
    except Fault:
        base = None
    return Remove(path, base) if kind == "remove" else Put(path, data, base)


def is_committed(workspace: Workspace, real: list[Change]) -> bool:
    try:
        commit(workspace._services.writer, real)
    except Fault:
        return False
    return True


def after(before: Tree, real: list[Change]) -> Tree:
    tree = dict(before)
    for change in real:
        parents = change.path.split("/")
        made = parents if isinstance(change, MakeDirectory) else parents[:-1]
        for depth in range(1, len(made) + 1):
            tree.setdefault("/".join(made[:depth]), ("d", 0o777 & ~umask()))
        if isinstance(change, Put):
            tree[change.path] = ("file", 0o666 & ~umask(), change.data)
        elif isinstance(change, Remove):
            tree.pop(change.path, None)
    return tree


def umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
