"""Tests that every tool answers about odd file names, long paths and deep trees."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.odd_calls import Arena

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.kernel.search import searcher

LEVELS = 1010
"""More than Python's recursion limit."""
NAME = "dwn"
"""So long that the absolute path of the last level is longer than the system allows, and the relative path is not."""
ODD = tuple(
    os.fsdecode(name)
    for name in (b"\xff\xfe", b"\xed\xa0\x80", b"a\nb", b"\r", b"\x1b[31m", b" ", b"-", b'"\\', b"C:\\x", b"*", b"{x}")
)
LONGEST = (os.fsdecode(b"n" * 255), os.fsdecode(b"\xe9" * 255))
BEYOND = ("n" * 256, "x/" * 3000, "../" * 1300)


@contextmanager
def deep_tree(top: Path) -> Iterator[None]:
    """Make directories so deep that no path can name the last one; remove them afterwards."""
    top.mkdir()
    at = os.open(top, os.O_RDONLY)
    for _ in range(LEVELS):
        os.mkdir(NAME, dir_fd=at)
        below = os.open(NAME, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", top], check=True)  # shutil.rmtree would recurse too deeply


@pytest.mark.parametrize("dialect", NAMES)
def test_every_tool_odd_file_names_are_answered(dialect: str, tmp_path: Path) -> None:
    with Arena(tmp_path, dialect) as arena:
        for name in (*ODD, *LONGEST):
            (arena.root / name).write_text("one\n")
            (arena.root / "src" / name).mkdir()
            (arena.root / "src" / name / name).write_text("one\n")
        within = tuple(f"src/{name}{rest}" for name in ODD for rest in ("", f"/{name}", "/none"))
        assert arena.problems_with_paths((*ODD, *LONGEST, *within, *BEYOND, ".", "src")) == {}


@pytest.mark.parametrize("dialect", NAMES)
def test_every_tool_deep_tree_is_answered(dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "program", lambda: None)  # ripgrep takes seconds to start in such a deep directory
    with Arena(tmp_path, dialect) as arena, deep_tree(arena.root / "deep"):
        bottom = "deep" + f"/{NAME}" * LEVELS
        assert arena.problems_with_paths((bottom, f"{bottom}/leaf", f"{bottom}/none"), reading=True) == {}


def test_glob_tree_deeper_than_handle_limit_is_searched_partly(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher, "program", lambda: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with deep_tree(root / "deep"), Workspace(str(root)) as workspace:
        (root / "near").write_text("needle\n")
        handles = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (handles + 200, hard))
        try:
            result = workspace.call("context", "glob", {"pattern": "**"})
            again = workspace.call("context", "read_file", {"path": "near"})
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(os.listdir("/proc/self/fd")) == handles
    assert result.success
    assert result.output["files"] == ["near"]  # type: ignore[index]
    assert any(f"deep/{NAME}/{NAME}" in warning for warning in result.warnings)
    assert again.success
