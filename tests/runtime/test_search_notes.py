"""Tests the warnings of a search that skipped files or ran out of time."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.kernel.search.searcher import EngineName, Searcher
from handrail.model.limits import Limits
from handrail.ops.search.results import FindResult
from handrail.ops.search.scope import FindRequest


@pytest.fixture(params=["ripgrep", "builtin"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    chosen: EngineName = request.param
    return chosen


def opened(root: Path, engine: EngineName, **limits: Any) -> Workspace:
    workspace = Workspace(str(root), limits=limits)
    workspace._services.__dict__["searcher"] = Searcher(workspace.settings.limits, engine)
    return workspace


@pytest.mark.parametrize(("tool", "asked"), [("grep", {"pattern": "needle"}), ("search", {"query": "needle"})])
def test_search_skipped_files_named_then_counted(
    root: Path, engine: EngineName, tool: str, asked: dict[str, Any]
) -> None:
    for name in "abcd":
        (root / name).write_text("needle\n" * (1 if name == "a" else 10))
    with opened(root, engine, context_file_bytes=20, skipped_names=1) as workspace:
        result = workspace.call("context", tool, asked)
    assert result.warnings == [
        "skipped b: larger than 20 bytes",
        "skipped 2 more files: larger than 20 bytes",
    ]
    found: Any = result.output
    assert [each["path"] for each in found["matches" if tool == "grep" else "results"]] == ["a"]


@pytest.mark.parametrize(
    ("dialect", "tool", "params"),
    [
        ("context", "grep", {"pattern": "needle"}),
        ("context", "search", {"query": "needle"}),
        ("copilot", "file_search", {"pattern": "**/*"}),
    ],
)
def test_search_timeout_gets_warning(
    root: Path, engine: EngineName, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    (root / "file").write_text("needle\n")
    with opened(root, engine, search_seconds=0) as workspace:
        result = workspace.call(dialect, tool, params)
    assert result.warnings == ["the search reached its time limit: the counts are lower bounds"]


def test_grep_search_timeout_warning_comes_first(root: Path, engine: EngineName) -> None:
    (root / "file").write_text("needle\n")
    with opened(root, engine, search_seconds=1e-9) as workspace:
        output: Any = workspace.call("copilot", "grep_search", {"pattern": "needle"}).output
    assert output.startswith("Warning: Search timed out after 1e-09s, returning partial results\nFound ")


class Overtaken(Searcher):
    """Deletes the first file that a find returns, like another process."""

    def find(
        self,
        dir_fd: int,
        request: FindRequest,
        cancel: threading.Event | None = None,
        seconds: float | None = None,
    ) -> FindResult:
        result = super().find(dir_fd, request, cancel, seconds)
        os.unlink(result.files[0], dir_fd=dir_fd)
        return result


def test_file_list_file_deleted_after_find_is_left_out(root: Path) -> None:
    for name in "ab":
        (root / name).write_text("x")
    with Workspace(str(root)) as workspace:
        workspace._services.__dict__["searcher"] = Overtaken(Limits())
        listed: Any = workspace.call("file", "file.list", {"pattern": "**/*"}).output
    assert [each["path"] for each in listed["files"]] == ["b"]
