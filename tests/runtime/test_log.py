"""Tests the session log, and calls with parameters that no JSON can hold: every call is answered."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.errors import SettingsError


class Unspeakable:
    """Raises for str(), repr() and ==."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = object.__hash__


class Unlistable(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


ODD: dict[str, Any] = {
    "64 bits": 2**63,
    "negative": -(2**70),
    "thousands of digits": 10**5000,
    "a large float": 1e300,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "lone surrogate": "\ud800",
    "deep": nested(50_000),
    "bytes": b"x",
    "tuple": (1, 2),
    "unspeakable": Unspeakable(),
    "unlistable": Unlistable(),
}
CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("file", "file.read", {"path": "a.txt"}, "path"),
    ("gemini", "read_file", {"absolute_path": "$ROOT/a.txt"}, "offset"),
    ("gemini", "run_shell_command", {"command": "true"}, "command"),
    ("context", "edit_lines", {"path": "a.txt", "start_line": 1, "terminate": False}, "operation"),
    ("copilot", "list_dir", {}, "page"),
    ("codex", "shell", {"command": "true"}, "timeout_ms"),
]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(("dialect", "tool", "params", "name"), CALLS)
def test_call_odd_parameter_is_named_in_error(
    root: Path, dialect: str, tool: str, params: dict[str, Any], name: str, odd: str
) -> None:
    with Workspace(str(root), approve="auto", sandbox="off", log_level="debug") as workspace:
        result = workspace.call(dialect, tool, {**params, name: ODD[odd]})
        assert result.error is not None
        assert result.error.code == "invalid_parameters"
        assert name in result.error.message.lower()
        json.dumps(result.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize("odd", ODD)
def test_call_odd_tool_name_and_call_id_answered_and_logged(root: Path, odd: str) -> None:
    with Workspace(str(root), log_level="debug") as workspace:
        router = workspace.tools("file")
        whole = router.call("file.read", ODD[odd])
        tool: Any = ODD[odd]
        unknown = router.call(tool, {})
        named = router.call("file.list", {}, call_id=ODD[odd])
        log = Path(workspace._default.log.path or "")
    assert [result.error and result.error.code for result in (whole, unknown, named)] == [
        "invalid_parameters",
        "unknown_tool",
        None,
    ]
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["request", "response"] * 3


def test_shell_timeout_beyond_system_range_is_accepted(root: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        result = workspace.call("codex", "shell", {"command": "sleep 0.2; echo done", "timeout_ms": 2**62})
        assert (result.success, result.output["stdout"]) == (True, "done\n")  # type: ignore[index]


def test_log_parameter_with_secret_name_is_hidden(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        workspace.call("file", "file.read", {"path": "a", "password": "hunter22", "deep": [{"api_key": "x y", "n": 1}]})
        text = Path(workspace._default.log.path or "").read_text()
    assert json.loads(text)["params"] == {
        "path": "a",
        "password": "[hidden]",
        "deep": [{"api_key": "[hidden]", "n": 1}],
    }


def test_log_fifo_without_reader_is_rejected_at_once(root: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="pipe cannot be written: No such device or address"):
        Workspace(str(root), log=str(tmp_path / "pipe"))


@pytest.mark.parametrize("gone", [False, True], ids=["that does not read", "that went away"])
def test_log_fifo_reader_never_blocks_calls(root: Path, tmp_path: Path, *, gone: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Workspace(str(root), log=str(tmp_path / "pipe")) as workspace:
            if gone:
                os.close(reader)
            for _ in range(200):
                assert not workspace.call("file", "file.read", {"path": "x" * 1500}).success
    finally:
        if not gone:
            os.close(reader)
