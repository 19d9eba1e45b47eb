"""Prepares the tests of the agent loop, which need the packages of `handrail[agent]` (`make test-agent`)."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob = [] if find_spec("pydantic_ai") else ["test_*.py"]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Write a script of a model and return its name for `--model`."""

    def write(*turns: dict[str, Any]) -> str:
        path = tmp_path / "script.jsonl"
        path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        return f"scripted:{path}"

    return write


@pytest.fixture
def project(root: Path) -> Path:
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return root
