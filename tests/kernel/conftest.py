import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import Level, level_of, workspace
from support.search_trees import Open, plant
from support.searchers import KINDS, searcher_of

from handrail.kernel.process.runner import Processes
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.search.searcher import Searcher


@pytest.fixture(params=["strict", "off", "reduced"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Level:
    chosen: Level = request.param
    if chosen == "reduced":
        monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    return chosen


@pytest.fixture
def processes(tmp_path: Path, level: Level) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", level_of(level)) as opened:
        assert opened.sandbox.start().level == level
        yield opened


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Processes]:
    with workspace(tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def marker() -> str:
    """Return a number that no other `sleep` on this machine uses."""
    return f"9{os.getpid()}.{time.monotonic_ns()}"


@pytest.fixture(params=KINDS)
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return searcher_of(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Open]:
    """Return a function that builds a tree from a dictionary of contents and opens it."""
    opened: list[int] = []

    def planted(content: dict[str, Any]) -> int:
        plant(content, str(tmp_path / "tree"))
        opened.append(os.open(tmp_path / "tree", os.O_RDONLY | os.O_DIRECTORY))
        return opened[-1]

    yield planted
    for fd in opened:
        os.close(fd)
