"""Plays scripted sessions with the mistakes that models make; each ends with the intended tree.

A session is one call, or two: the second follows a hint of the first answer. `uses` is the piece of the answer that the
correction takes over; it stands in both. `$ROOT` is the absolute path of the workspace.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from handrail import ToolResult, Workspace
from handrail.dialects import NAMES

HERE = Path(__file__).parent
SESSIONS = [
    (path.stem, each) for path in sorted(HERE.glob("*.toml")) for each in tomllib.loads(path.read_text())["session"]
]
SEEDS = ("gemini", "context", "copilot", "file", "codex")


@pytest.mark.parametrize(("dialect", "session"), SESSIONS, ids=[f"{name}:{each['mistake']}" for name, each in SESSIONS])
def test_session_with_mistake_ends_with_intended_tree(dialect: str, session: dict[str, Any], root: Path) -> None:
    for name, text in session.get("before", {}).items():
        _write(root, name, text)
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        router = workspace.tools(dialect)
        if first := session.get("first"):
            assert router.call(*_call(first, root)).success
        for name, text in session.get("changed", {}).items():
            _write(root, name, text)
        result = router.call(*_call(session["call"], root))
        if then := session.get("then"):
            uses = session["uses"].replace("$ROOT", str(root))
            assert not result.success or result.warnings, f"no correction is due: {result.text}"
            assert any(uses in each for each in _said(result)), result.text
            tool, params = _call(then, root)
            assert any(uses in each for each in _pieces(tool, params)), f"{uses} is not in the correction"
            result = router.call(tool, params)
        assert result.success, result.text
        assert not result.warnings, result.warnings
    wanted = session.get("before", {}) | session.get("changed", {}) | session.get("after", {})
    assert _tree(root) == {name: text for name, text in wanted.items() if text != "<gone>"}


@pytest.mark.parametrize("name", SEEDS)
def test_sessions_are_forty_for_each_seed_dialect(name: str) -> None:
    mistakes = [each["mistake"] for dialect, each in SESSIONS if dialect == name]
    assert name in NAMES
    assert len(mistakes) >= 40
    assert len({*mistakes}) == len(mistakes)


def _call(written: str, root: Path) -> tuple[str, Any]:
    tool, _, params = written.partition(" ")
    return tool, json.loads(params.replace("$ROOT", str(root)))


def _said(result: ToolResult) -> list[str]:
    """Return what the answer says, as it is shown and as a reader of its JSON gets it."""
    return [result.text, *(result.error or ())]


def _pieces(tool: str, value: Any) -> list[str]:
    """Return every text of a call: the name of the tool, names and values of parameters, and each pair as JSON."""
    if isinstance(value, dict):
        pairs = [f'"{name}": {json.dumps(each, ensure_ascii=False)}' for name, each in value.items()]
        return [tool, *value, *pairs, *(piece for each in value.values() for piece in _pieces(tool, each))]
    if isinstance(value, list):
        return [piece for each in value for piece in _pieces(tool, each)]
    return [value if isinstance(value, str) else json.dumps(value)]


def _write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(text.encode())


def _tree(root: Path) -> dict[str, str]:
    files = [each for each in root.rglob("*") if each.is_file()]
    return {str(each.relative_to(root)): each.read_bytes().decode() for each in files}
