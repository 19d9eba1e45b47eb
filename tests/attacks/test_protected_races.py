"""Checks that a search shows no line of a protected file while another process keeps exchanging directories.

Each test exchanges a protected and an open directory at one exact point: when the search opens the open directory, or
while ripgrep runs. Directly after it, the test changes them back, so every name that the search checks is harmless.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import SECRET

from handrail import Workspace
from handrail.kernel.search.rg_process import run_ripgrep
from handrail.kernel.search.searcher import Searcher

SEARCHES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "first files": ("file", "file.search", {"pattern": "TOKEN", "max_results": 1}),
    "all files": ("copilot", "grep_search", {"pattern": "TOKEN"}),
    "lines of context": ("context", "grep", {"pattern": "TOKEN", "context_lines": 2}),
    "ranking": ("context", "search", {"query": "token"}),
    "files searched": ("codex", "grep_files", {"pattern": "TOKEN"}),
}
POINTS = [("builtin", "open"), ("ripgrep", "open"), ("ripgrep", "process")]
LINES = {"short": "{}\n" * 3, "long": f"{'x' * 5000}{{}}\n" * 3}


class Exchange:
    """Exchanges `open` and `secret` at one point of a search, and counts how often it did."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root, self._monkeypatch, self.count = root, monkeypatch, 0

    @contextmanager
    def _exchanged(self) -> Iterator[None]:
        self._swap()
        self.count += 1
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for old, new in (("open", "away"), ("secret", "open"), ("away", "secret")):
            os.rename(self._root / old, self._root / new)

    def at(self, point: str) -> None:
        original_open, original_run = os.open, run_ripgrep

        def opening(path: Any, *rest: Any, **named: Any) -> int:
            if path != "open":
                return original_open(path, *rest, **named)
            with self._exchanged():
                return original_open(path, *rest, **named)

        def running(argv: list[str], *rest: Any, **named: Any) -> Any:
            if argv[-1] != ".":
                return original_run(argv, *rest, **named)
            with self._exchanged():
                return original_run(argv, *rest, **named)

        if point == "open":
            self._monkeypatch.setattr(os, "open", opening)
        else:
            self._monkeypatch.setattr("handrail.kernel.search.ripgrep.run_ripgrep", running)


def _plant(root: Path, name: str, lines: str) -> None:
    for directory, text in (("open", "TOKEN of the public"), ("secret", SECRET)):
        (root / directory).mkdir(exist_ok=True)
        (root / directory / name).write_text(lines.format(text, text, text))


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("age", ["known", "new"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(("engine", "point"), POINTS)
def test_search_during_exchange_shows_no_protected_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, engine: Any, point: str, search: str, age: str, lines: str
) -> None:
    """A known file is recognised by its identity; a file that is newer than the last scan by its place."""
    _plant(root, "known", LINES[lines])
    slow = {"protect_seconds": 3600, "search_look_seconds": 60}
    with Workspace(str(root), protect=["secret/**"], limits=slow) as workspace:
        workspace._services.__dict__["searcher"] = Searcher(workspace.settings.limits, engine)
        assert workspace.call("copilot", "read_file", {"path": "open/known"}).success  # scans for protected files
        if age == "new":
            for directory in ("open", "secret"):
                (root / directory / "known").unlink()
            _plant(root, "new", LINES[lines])
        exchange = Exchange(root, monkeypatch)
        exchange.at(point)
        result = workspace.call(*SEARCHES[search])
        monkeypatch.undo()
    assert result.success
    assert exchange.count or (search, point) == ("first files", "process")
    assert "hunter2" not in json.dumps(result.to_dict())


def test_search_does_not_count_matches_of_exchanged_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that only the protected file matches must not tell, by a number, that the file matches it."""
    _plant(root, "known", LINES["short"])
    with Workspace(str(root), protect=["secret/**"], limits={"protect_seconds": 3600}) as workspace:
        for engine, point in POINTS:
            workspace._services.__dict__["searcher"] = Searcher(workspace.settings.limits, engine)  # type: ignore[arg-type]
            exchange = Exchange(root, monkeypatch)
            exchange.at(point)
            found = workspace.call("copilot", "grep_search", {"pattern": "hunter2"})
            monkeypatch.undo()
            assert exchange.count or engine == "ripgrep"
            assert found.output == "Found 0 matches for 'hunter2':"


@pytest.mark.parametrize("end", ["deleted", "outside"])
def test_handle_of_file_that_left_protected_directory_is_hidden(root: Path, tmp_path: Path, end: str) -> None:
    _plant(root, "known", LINES["short"])
    with Workspace(str(root), protect=["**/secret/new"], limits={"protect_seconds": 3600}) as workspace:
        protected = workspace._services.boundary.protected
        assert protected is not None
        assert not protected.hides("open/known")  # scans for protected files
        _plant(root, "new", LINES["short"])
        handles = [os.open(root / directory / "new", os.O_RDONLY) for directory in ("secret", "open")]
        assert [*map(protected.hides_handle, handles)] == [True, False]
        for directory in ("secret", "open"):
            if end == "deleted":
                (root / directory / "new").unlink()
            else:
                (root / directory / "new").rename(tmp_path / directory)
        assert [*map(protected.hides_handle, handles)] == [True, end == "outside"]
        for handle in handles:
            os.close(handle)
