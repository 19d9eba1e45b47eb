"""Tests ToolRouter: results, errors, cancellation and the session log."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.throwaway_dialect import router_of

from handrail import ToolResult, ToolRouter, Workspace, __version__
from handrail.dialects import load
from handrail.kernel.host.session_log import shorten
from handrail.tools.messages import ToolError

CUT = "3 long lines were shortened around the match"


def lines(workspace: Workspace) -> list[dict[str, Any]]:
    path = workspace._default.log.path
    assert path is not None
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log" / "session.jsonl"


@pytest.fixture
def router(root: Path, log: Path) -> Iterator[ToolRouter]:
    limits = {"log_debug_chars": 2000}
    with Workspace(str(root), approve="auto", log=str(log), log_level="debug", limits=limits) as workspace:
        yield router_of(workspace)


def read_log(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_router_result_has_output_metadata_and_warnings(router: ToolRouter) -> None:
    result = router.call("fine").to_dict()
    assert result.pop("execution_time_ms") >= 0
    assert result == {
        "tool": "fine",
        "success": True,
        "output": "fine",
        "files_affected": [],
        "metadata": {"answer": 42},
        "warnings": [CUT],
    }


def test_router_unknown_parameter_ignored_only_if_allowed(router: ToolRouter) -> None:
    assert router.call("fine", {"surplus": 1}).success
    assert router.call("note", {"text": "", "surplus": 1}).error is not None


@pytest.mark.parametrize("tool", ["no.such.tool", "", None, 5, ["fine"], {"a": 1}])
def test_router_unknown_tool_is_error_result(router: ToolRouter, tool: Any) -> None:
    result = router.call(tool, {})
    assert result.error is not None
    assert (result.tool, result.error.code) == (str(tool), "unknown_tool")
    assert result.error.suggestion.endswith("Use one of: buggy, fine, restless, note")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "Missing required parameter 'text'"),
        (None, "Missing required parameter 'text'"),
        ({"text": 5}, "Parameter 'text' must be a string, not integer"),
        ({"text": b"x"}, "Parameter 'text' must be a string, not value"),
        ({"text": "x", 3: 4}, "Unknown parameter '3'; expected text"),
        ("text", "The parameters must be an object, not string"),
        (7, "The parameters must be an object, not integer"),
    ],
)
def test_router_wrong_parameters_are_named(router: ToolRouter, params: Any, message: str) -> None:
    result = router.call("note", params)
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("invalid_parameters", message)
    assert result.files_affected == []


def test_router_unknown_parameter_of_tool_without_parameters(router: ToolRouter) -> None:
    result = router.call("buggy", {"x": 1})
    assert result.error is not None
    assert result.error.message == "Unknown parameter 'x'; expected no parameters"


def test_router_bug_is_internal_error_with_logged_traceback(router: ToolRouter, log: Path) -> None:
    result = router.call("buggy")
    assert result.to_dict()["error"] == {
        "code": "internal_error",
        "message": "The tool failed because of a bug in Handrail",
        "suggestion": "The session log has the details; other calls still work",
    }
    assert result.output == {
        "error": "internal_error",
        "message": "The tool failed because of a bug in Handrail",
    }
    (bug,) = [line for line in read_log(log) if line["event"] == "bug"]
    assert (bug["level"], bug["tool"], bug["call"]) == ("ERROR", "buggy", 1)
    assert bug["traceback"].startswith("Traceback (most recent call last):\n")
    assert bug["traceback"].endswith("ZeroDivisionError: the bug\n")
    assert router.call("fine").success


def test_router_repeated_conflict_is_error_result(router: ToolRouter) -> None:
    result = router.call("restless")
    assert result.error is not None
    assert result.error.code == "conflict"
    assert result.warnings == [CUT]  # only the warnings of the last attempt


def test_router_cancelled_call_changes_nothing(router: ToolRouter, root: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    result = router.call("note", {"text": "x"}, cancel=cancel)
    assert result.error is not None
    assert result.error.code == "cancelled"
    assert not list(root.iterdir())
    assert router.call("note", {"text": "x"}, cancel=threading.Event()).success


def test_replaced_root_gets_warning_and_original_is_used(root: Path, workspace: Workspace) -> None:
    (root / "a.txt").write_text("original\n")
    moved = root.rename(root.parent / "moved")
    root.mkdir()
    result = workspace.call("file", "file.read", {"path": "a.txt"})
    assert result.output == {"content": "     1\toriginal", "total_lines": 1, "truncated": False}
    warning = "the workspace directory was replaced; this session still uses the original one"
    assert result.warnings == [warning]
    written = workspace.call("file", "file.write", {"path": "b.txt", "content": "x"})
    assert (written.success, written.warnings) == (True, [warning])
    assert (moved / "b.txt").exists()
    assert not list(root.iterdir())
    root.rmdir()
    assert workspace.call("file", "file.list").warnings == [warning]


# ── the session log ──


def test_log_requests_at_info_responses_at_debug(router: ToolRouter, log: Path) -> None:
    result = router.call("fine", {"b": 1, "a": 2}, call_id="seven")
    request, response = read_log(log)
    assert request.pop("time") <= response.pop("time")
    assert request.pop("session") == response.pop("session") == router._session.id
    assert request == {
        "root": router._session.services.boundary.root,
        "version": __version__,
        "level": "INFO",
        "event": "request",
        "call": 1,
        "dialect": "throwaway",
        "tool": "fine",
        "params": {"b": 1, "a": 2},
        "id": "seven",
    }
    assert response == {"level": "DEBUG", "event": "response", "call": 1, "result": result.to_dict()}


def test_log_at_info_has_no_responses(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        workspace.call("file", "file.list")
        workspace.call("file", "file.read", {"path": "no"})
        assert [(line["event"], line["call"], line["tool"]) for line in lines(workspace)] == [
            ("request", 1, "file.list"),
            ("request", 2, "file.read"),
        ]
        path = Path(workspace._default.log.path or "")
        assert path.stat().st_mode & 0o077 == 0


def test_log_level_off_writes_no_file(root: Path, log: Path) -> None:
    with Workspace(str(root), log=str(log), log_level="off") as workspace:
        assert workspace.call("file", "file.list").success
        assert not router_of(workspace).call("buggy").success
    assert not log.exists()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("nothing special", "nothing special"),
        ("key sk-abcdefghijklmnop1234 end", "key [hidden] end"),
        ("ghp_abcdefghijklmnopqrst0123", "[hidden]"),
        ("AKIAIOSFODNN7EXAMPLE", "[hidden]"),
        ('{"api_key": "hunter2hunter2"}', '{"api_key": "[hidden]"}'),
        ("password=correcthorse;", "password=[hidden];"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [hidden]"),
        ("jwt eyJhbGciOiJIU.eyJzdWIiOiIx.sfl", "jwt [hidden]"),
        ("tokens: 12", "tokens: 12"),
        ("x" * 50, "x" * 40 + "… (50 characters)"),
        ("x" * 30 + " sk-abcdefghijklmnop1234", "x" * 30 + " [hidden]… (54 characters)"),
        (["sk-abcdefghijklmnop1234", {"sk-abcdefghijklmnop1234": 5}], ["[hidden]", {"[hidden]": 5}]),
        (3.5, 3.5),
        (None, None),
    ],
)
def test_shorten_hides_secrets_and_cuts_long_text(text: Any, kept: Any) -> None:
    assert shorten(text, 40) == kept


def test_log_long_parameter_is_cut(router: ToolRouter, log: Path) -> None:
    router.call("note", {"text": "y" * 100_000})
    assert read_log(log)[0]["params"] == {"text": "y" * 2000 + "… (100000 characters)"}
    assert log.stat().st_size < 10_000


def test_log_cyclic_and_non_json_parameters_are_cut(router: ToolRouter, log: Path) -> None:
    deep: list[Any] = []
    deep.append(deep)
    assert router.call("fine", {"deep": deep, "bytes": b"x", 5: {6}}).success
    params = read_log(log)[0]["params"]
    assert (params["bytes"], params["5"]) == ("b'x'", "{6}")
    assert json.dumps(params["deep"]).count("[") == 18


def test_log_full_device_stops_no_call(root: Path) -> None:
    with Workspace(str(root), log="/dev/full") as workspace:
        assert workspace.call("file", "file.list").success
        assert workspace.call("file", "file.list").success


def test_log_unwritable_state_directory_is_noted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from handrail.kernel.host.state_dir import State

    monkeypatch.setattr(State, "session_log", lambda self, session: "/proc/no/log")
    with Workspace(str(root)) as workspace:
        (noted,) = workspace.warnings
        assert noted.startswith("there is no session log: /proc/no/log cannot be written: ")
        assert workspace.call("file", "file.list").success


def test_tool_result_to_dict_omits_empty_fields() -> None:
    assert ToolResult("t", True, "x", [], 1).to_dict() == {
        "tool": "t",
        "success": True,
        "output": "x",
        "files_affected": [],
        "execution_time_ms": 1,
    }


def test_tool_validate_names_problems_in_words_of_dialect() -> None:
    read = load("file").tools["file.read"]
    assert read.validate({"path": "a"}) is None
    assert read.validate(None) == ToolError(
        "invalid_parameters",
        "Missing required parameter 'path'",
        "Add 'path'",
    )
    said = load("gemini").tools["read_file"].validate({"absolute_path": 7})
    assert said is not None
    assert said.message == "Error: Invalid parameters provided. Reason: params/absolute_path must be string"


def test_router_validate_checks_without_running(root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    with Workspace(str(root), protect=["*.pem"]) as workspace:
        router = workspace.tools("file")

        def code(tool: str, **params: Any) -> str | None:
            wrong = router.validate(tool, params)
            return wrong.code if wrong else None

        assert code("file.read", path="a.txt") is None
        assert code("file.write", path="new/b.txt", content="x") is None
        assert code("file.read", path="gone") == "file_not_found"
        assert code("file.write", path="../b.txt", content="x") == "path_outside_workspace"
        assert code("file.delete", path="key.pem") == "protected_file"
        assert code("file.patch", path="a.txt") == "invalid_parameters"
        assert code("file.raed", path="a.txt") == "unknown_tool"
    assert sorted(each.name for each in root.iterdir()) == ["a.txt"]


def test_router_validate_notes_no_file_as_read_and_ends_nothing(root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    path = str(root / "a.txt")
    with Workspace(str(root), approve="auto") as workspace:
        code = workspace.tools("claude-code")
        assert code.validate("Read", {"file_path": path}) is None
        edit = {"file_path": path, "old_string": "one", "new_string": "1"}
        assert code.call("Edit", edit).error.code == "not_read_yet"  # type: ignore[union-attr]
        shell = workspace.tools("claude")
        shell.call("bash", {"command": "x=kept"})
        assert shell.validate("bash", {"restart": True}) is None
        assert shell.validate("bash", {"command": "x=other; touch made"}) is None
        assert shell.call("bash", {"command": "echo $x"}).output == "kept"
    assert sorted(each.name for each in root.iterdir()) == ["a.txt"]


def test_router_validate_closed_session_is_an_error(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        router = workspace.tools("file")
    assert router.validate("file.read", {"path": "a"}).code == "session_closed"  # type: ignore[union-attr]


def test_router_validate_knows_renamed_tools(workspace: Workspace) -> None:
    router = workspace.tools("file").renamed({"file.read": "cat"})
    assert router.validate("cat", {"path": "gone"}) is not None
    assert router.validate("file.read", {"path": "gone"}).code == "unknown_tool"  # type: ignore[union-attr]
