"""Checks that a glob names no link to a protected file, out of the root, or to something that is not a file."""

import os
from pathlib import Path

import pytest

from handrail import Workspace

GLOBS = [("file", "file.list"), ("context", "glob"), ("copilot", "file_search"), ("gemini", "glob")]


@pytest.mark.parametrize(("dialect", "tool"), GLOBS)
def test_glob_names_only_links_to_readable_files(root: Path, tmp_path: Path, dialect: str, tool: str) -> None:
    (tmp_path / "outside").write_text("outside")
    (root / "notes").write_text("x")
    (root / ".env").write_text("SECRET=1")
    os.mkfifo(root / "pipe")
    targets = {"good": "notes", "secret": ".env", "out": str(tmp_path / "outside"), "fifo": "pipe", "gone": "nowhere"}
    for name, target in targets.items():
        (root / f"{name}.link").symlink_to(target)
    with Workspace(str(root), approve="auto", protect="secrets") as workspace:
        result = workspace.call(dialect, tool, {"pattern": "*.link"})
    assert result.success
    assert [name for name in targets if f"{name}.link" in str(result.output)] == ["good"]
