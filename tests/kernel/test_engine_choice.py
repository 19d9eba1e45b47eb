"""Tests which engine answers a search, and what happens without ripgrep."""

from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.search import searcher


@pytest.fixture
def no_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behave as if the ripgrep package were not installed."""
    monkeypatch.setattr(searcher, "program", lambda: None)


def test_ripgrep_answers_if_installed(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("hit\n")
    result = workspace.call("file", "file.search", {"pattern": "hit"})
    assert result.metadata["engine"] == "ripgrep"


@pytest.mark.usefixtures("no_ripgrep")
def test_builtin_engine_answers_without_ripgrep(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("hit\n")
    result = workspace.call("file", "file.search", {"pattern": "hit"})
    assert result.metadata["engine"] == "builtin"
    assert result.output == {"matches": [{"path": "a.txt", "line": 1, "content": "hit"}], "truncated": False}


@pytest.mark.usefixtures("no_ripgrep")
def test_forbidden_builtin_engine_without_ripgrep_is_an_error(root: Path) -> None:
    with Workspace(str(root), builtin_search=False) as workspace:
        result = workspace.call("file", "file.search", {"pattern": "hit"})
    assert result.error is not None
    assert result.error.code == "ripgrep_not_found"


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_grep_search_counts_text_files_that_it_read(
    workspace: Workspace, root: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "builtin":
        monkeypatch.setattr(searcher, "program", lambda: None)
    (root / "a.txt").write_text("def connect(x):\n")
    (root / "b.txt").write_text("nothing\n")
    (root / "c.bin").write_bytes(b"connect\0")
    result = workspace.call("copilot", "grep_search", {"pattern": "connect"})
    assert result.output == "Found 1 matches for 'connect':\n  a.txt:1: def connect(x):"
    assert result.metadata == {"engine": engine, "total_matches": 1, "files_searched": 2, "pattern": "connect"}


@pytest.mark.parametrize("engine", ["ripgrep", "builtin"])
def test_search_with_ignore_files_off_reads_everything(
    root: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "builtin":
        monkeypatch.setattr(searcher, "program", lambda: None)
    (root / ".gitignore").write_text("*.log\n")
    (root / "node_modules").mkdir()
    for name in ("a.txt", "b.log", "node_modules/c.js"):
        (root / name).write_text("hit\n")
    for honoured, names in ((True, ["a.txt", "node_modules/c.js"]), (False, ["a.txt", "b.log", "node_modules/c.js"])):
        with Workspace(str(root), ignore_files=honoured) as workspace:
            result = workspace.call("file", "file.search", {"pattern": "hit"})
        assert isinstance(result.output, dict)
        assert [match["path"] for match in result.output["matches"]] == names
