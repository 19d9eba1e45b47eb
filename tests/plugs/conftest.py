"""Prepares the tests of plugs: each needs the package of its harness (`make test-plugs`)."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from handrail.fleet.plugs.bridge import FLEETS, Bridge

_NEEDS = {"test_inspect.py": "inspect_ai", "test_swerex.py": "swerex", "test_verl.py": "verl"}
collect_ignore = [name for name, package in _NEEDS.items() if find_spec(package) is None]


@pytest.fixture
def tree(tmp_path: Path) -> str:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return str(root)


@pytest.fixture(autouse=True)
def no_fleet_left() -> Iterator[None]:
    yield
    FLEETS.close()


@pytest.fixture
def bridge(tree: str) -> Iterator[Bridge]:
    opened = Bridge.open(tree, {"hosts": 1})
    yield opened
    opened.close()
