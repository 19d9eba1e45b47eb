"""Plays scripted sessions with the mistakes that models make; each ends with the intended tree.

A session is one call, or two: the second follows a hint of the first answer. `uses` is the piece of the answer that the
correction takes over; it stands in both. If the hint says to read first, the correction is that read and the call.
`first` is a call before, and `changed` are files that another process writes after it. `$ROOT` is the absolute path of
the workspace.
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
            uses, corrections = session["uses"], [then] if isinstance(then, str) else then
            assert _went_wrong(result), f"no correction is due: {result.text}"
            assert any(uses in each.replace(str(root), "$ROOT") for each in _said(result)), result.text
            pieces = [piece for each in corrections for piece in _pieces(*_call(each, "$ROOT"))]
            assert any(uses in each for each in pieces), f"{uses} is not in the correction"
            for each in corrections:
                result = router.call(*_call(each, root))
        assert result.success, result.text
        warns = session.get("warns", "no warning is due")
        assert all(warns in each for each in result.warnings), result.warnings
        assert result.warnings or "warns" not in session
    wanted = session.get("before", {}) | session.get("changed", {}) | session.get("after", {})
    assert _tree(root) == {name: text for name, text in wanted.items() if text != "<gone>"}


@pytest.mark.parametrize("name", NAMES)
def test_sessions_are_forty_for_each_dialect(name: str) -> None:
    mistakes = [each["mistake"] for dialect, each in SESSIONS if dialect == name]
    assert len(mistakes) >= 40
    assert len({*mistakes}) == len(mistakes)


def _went_wrong(result: ToolResult) -> bool:
    """Return whether an answer calls for a correction: an error, a warning, or an exit code other than 0."""
    output = result.output if isinstance(result.output, dict) else {}
    return not result.success or bool(result.warnings or output.get("returncode"))


def _call(written: str, root: Path | str) -> tuple[str, Any]:
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
