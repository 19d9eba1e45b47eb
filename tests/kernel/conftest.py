import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from search_trees import Open, plant

from handrail.kernel.search import Searcher


@pytest.fixture(params=["ripgrep", "builtin"])
def searcher(request: pytest.FixtureRequest) -> Searcher:
    return Searcher(engine=request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Open]:
    """Plant a tree, given as a dictionary of contents, and open it."""
    opened: list[int] = []

    def planted(content: dict[str, Any]) -> int:
        plant(content, str(tmp_path / "tree"))
        opened.append(os.open(tmp_path / "tree", os.O_RDONLY | os.O_DIRECTORY))
        return opened[-1]

    yield planted
    for fd in opened:
        os.close(fd)
