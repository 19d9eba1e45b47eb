"""Generates trees of files and random edits; runs the real programs that make and apply diffs."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

import handrail
from handrail.ops.patch import PatchedContent, PatchOutcome, apply, parse

Tree = dict[str, PatchedContent]

GIT_ENV = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
NAMES = ["f", "dir/g.txt", "sp ace.txt", "é.txt", 'q"uote', "b/x", "a/y", "t\tab", "f.orig"]
WORDS = [
    b"",
    b"a",
    b"b",
    b"  x",
    b"x",
    b"{",
    b"}",
    b"\xff\xfe",
    b"-- a",
    b"++ b",
    "é\u2013\u201c".encode(),
    b"foo(bar)",
    b"\ttab",
]
ODD_WORDS = [
    b"@@ -1 +1 @@",
    b"-",
    b"+",
    b"\\ No newline at end of file",
    b"diff --git a/f b/f",
    b" ",
    b"*** End Patch",
]

_MANY_LINES, _REAL_BYTES = 24, 120_000

lines = st.sampled_from([*WORDS, *ODD_WORDS]) | st.integers(0, 99).map(lambda number: b"line %d" % number)


@st.composite
def contents(draw: st.DrawFn, *, mixed: bool = True) -> bytes:
    ends = [b"\n", b"\r\n"]
    end = draw(st.sampled_from([*ends, b""] if mixed else ends))
    text = b"".join(line + (end or draw(st.sampled_from(ends))) for line in draw(st.lists(lines, max_size=24)))
    return text.rstrip(b"\r\n") if draw(st.integers(0, 3)) == 0 else text


@cache
def real_files() -> list[Path]:
    """Return real files: those of this project and of the standard library."""
    ours = Path(handrail.__file__).parent
    found = [*ours.rglob("*.py"), *Path(os.__file__).parent.glob("*.py"), *ours.parents[1].glob("docs/*.md")]
    return sorted(path for path in found if 0 < path.stat().st_size < _REAL_BYTES)


@st.composite
def real_contents(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(real_files())).read_bytes().replace(b"\r\n", b"\n")
    if draw(st.integers(0, 4)) == 0:
        data = data.replace(b"\n", b"\r\n")
    return data.rstrip(b"\r\n") if draw(st.integers(0, 4)) == 0 else data


@st.composite
def edited(draw: st.DrawFn, data: bytes) -> bytes:
    """Return `data` after a few edits that keep its line ends, with lines from it and new ones."""
    end = b"\r\n" if b"\r\n" in data else b"\n"
    closed = data.endswith(b"\n") or not data
    kept = data.split(end)
    if closed:
        kept.pop()
    for _ in range(draw(st.integers(0, 4))):
        at, far = draw(st.integers(0, len(kept))), draw(st.integers(0, max(len(kept) - 1, 0)))
        copied = kept[far : far + draw(st.integers(0, 9))] if len(kept) > _MANY_LINES else []
        kept[at : at + draw(st.integers(0, 2))] = copied or draw(st.lists(lines, max_size=2))
    closed = draw(st.sampled_from([closed, closed, closed, not closed]))
    return end.join(kept) + (end if closed and kept else b"")


@st.composite
def two_trees(draw: st.DrawFn, *, mixed: bool = True, moves: bool = True, real: bool = False) -> tuple[Tree, Tree]:
    """Draw a tree before and after edits. `real`: real files; otherwise lines that are hard to patch."""
    before: Tree = {}
    after: Tree = {}
    modes = st.sampled_from([0o644, 0o644, 0o755])
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)):
        old = PatchedContent(draw(real_contents() if real else contents(mixed=mixed)), draw(modes))
        new = PatchedContent(draw(edited(old.data)), draw(modes))
        fate = draw(st.sampled_from(["edit", "edit", "edit", "keep", "create", "delete", "move"]))
        if fate != "create":
            before[name] = old
        if fate == "move" and moves:
            after["moved " + name.replace("/", "_")] = draw(st.sampled_from([old, new]))
        elif fate != "delete":
            after[name] = old if fate == "keep" else new
    return before, after


def write(root: Path, tree: Tree) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.data)
        path.chmod(content.mode or 0o644)


def read(root: Path) -> Tree:
    return {path.relative_to(root).as_posix(): _content(path) for path in _files(root)}


def _files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)


def _content(path: Path) -> PatchedContent:
    return PatchedContent(path.read_bytes(), path.stat().st_mode & 0o777)


def run(*command: str, cwd: Path, text: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(command, cwd=cwd, env=GIT_ENV, input=text, capture_output=True, check=False)


def patched(tree: Tree, text: str) -> Tree:
    return after(tree, apply(parse(text), tree.get))


def after(tree: Tree, outcomes: list[PatchOutcome]) -> Tree:
    result = dict(tree)
    for outcome in outcomes:
        result.pop(outcome.path, None)
        if outcome.after:
            mode = 0o644 if outcome.after.mode is None else outcome.after.mode
            result[outcome.path] = PatchedContent(outcome.after.data, mode)
    return result
