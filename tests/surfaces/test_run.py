"""Tests `handrail run`: it reads JSON lines and prints one envelope for each, in one session."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ARGV, envelope, handrail, usage_error

HOW = 'Send one JSON object per line: {"tool": "…", "params": {…}, "id": …}'


def run(root: Path, lines: str | bytes, *options: str) -> list[dict[str, Any]]:
    done = handrail("run", "--root", str(root), *options, stdin=lines)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n") or not done.stdout
    return [envelope(line) for line in done.stdout.split("\n")[:-1]]


def bad(message: str, **known: Any) -> dict[str, Any]:
    return {
        **known,
        "tool": known.get("tool", ""),
        "success": False,
        "output": {"error": "invalid_request", "message": message},
        "files_affected": [],
        "error": {"code": "invalid_request", "message": message, "suggestion": HOW},
    }


def test_run_answers_every_line_in_order_with_id(root: Path) -> None:
    lines = [
        {"tool": "file.write", "params": {"path": "a", "content": "x\n"}, "id": 1},
        {"tool": "file.read", "params": {"path": "a"}, "id": {"any": ["json"]}},
        {"tool": "file.delete", "params": {"path": "a"}},
        {"tool": "file.list", "id": None},
    ]
    assert run(root, "\n".join(map(json.dumps, lines)) + "\n", "--approve", "auto") == [
        {"id": 1, "tool": "file.write", "success": True, "output": {"success": True, "bytes_written": 2},
         "files_affected": ["a"]},
        {"id": {"any": ["json"]}, "tool": "file.read", "success": True,
         "output": {"content": "     1\tx", "total_lines": 1, "truncated": False}, "files_affected": []},
        {"tool": "file.delete", "success": True, "output": {"success": True}, "files_affected": ["a"]},
        {"id": None, "tool": "file.list", "success": True, "output": {"files": [], "directories": []},
         "files_affected": []},
    ]  # fmt: skip


def test_run_bad_line_is_error_and_run_continues(root: Path) -> None:
    lines = [
        b"not json",
        b'"a string"',
        b"[]",
        b"",
        b"   ",
        b"{}",
        b'{"tool": 5, "id": 7}',
        b'{"tool": "file.list", "parameters": {}, "id": 8}',
        b'{"tool": "file.list", "params": "\xff"}',
        b"[" * 100_000,
        b'{"tool": "file.list", "id": 9}',
    ]
    answers = run(root, b"\n".join(lines))
    messages = [answer.get("error", {}).get("message") for answer in answers]
    assert answers[0] == bad("The line is not valid JSON: Expecting value: line 1 column 1 (char 0)")
    assert answers[1:3] == [bad("The line is not a JSON object")] * 2
    assert answers[3] == bad("The object has no tool name")
    assert answers[4] == bad("The object has no tool name", id=7)
    assert answers[5] == bad("Unknown key 'parameters'", id=8, tool="file.list")
    assert messages[6].startswith("The line is not valid JSON: 'utf-8' codec can't decode byte 0xff")
    assert messages[7].startswith("The line is not valid JSON: maximum recursion depth exceeded")
    assert (answers[8]["id"], answers[8]["success"]) == (9, True)
    assert len(answers) == 9


@pytest.mark.parametrize("depth", [400, 900])
def test_run_deep_parameters_are_answered(root: Path, depth: int) -> None:
    nest = "[" * depth + "]" * depth
    (answer,) = run(root, f'{{"tool": "file.read", "params": {{"path": {nest}}}}}\n')
    assert answer["error"]["message"] == "Parameter 'path' must be a string, not array"


def test_run_tool_error_and_denial_are_answered(root: Path) -> None:
    write = '{"tool": "file.write", "params": {"path": "a", "content": ""}}\n'
    first, second = run(root, '{"tool": "file.read", "params": {"path": "no"}}\n' + write)
    assert first["error"]["code"] == "file_not_found"
    assert second["error"]["code"] == "approval_denied"


def test_run_lone_surrogates_are_answered(root: Path) -> None:
    lines = '{"tool": "\\ud800", "id": "\\udfff"}\n{"tool": "file.list", "params": {"\\ud800": 1}}\n'
    first, second = run(root, lines)
    assert (first["id"], first["tool"], first["error"]["code"]) == ("\udfff", "\ud800", "unknown_tool")
    assert second["error"]["message"] == "Unknown parameter '\ud800'; expected path, pattern"


def test_run_ambiguous_tool_needs_dialect(root: Path) -> None:
    (root / "a").write_text("x")
    line = '{"tool": "read_file", "params": {"path": "a"}, "id": 1}\n'
    message = "several dialects have read_file; choose one with --dialect: gemini, context, copilot, codex, gemini-3"
    assert run(root, line) == [bad(message, id=1, tool="read_file")]
    (named,) = run(root, line, "--dialect", "context")
    assert named["success"] is True


def test_run_read_only_refuses_writing_tool(root: Path) -> None:
    lines = '{"tool": "file.write", "params": {"path": "a", "content": ""}}\n{"tool": "file.list"}\n'
    first, second = run(root, lines, "--read-only", "--approve", "auto")
    assert first["error"]["code"] == "approval_denied"
    assert second["success"] is True


def test_run_answers_before_next_line(root: Path) -> None:
    """Send a call only after the answer to the one before."""
    process = subprocess.Popen(
        [*ARGV, "run", "--root", str(root), "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(3):
        process.stdin.write(f'{{"tool": "file.list", "id": {number}}}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == number
    process.stdin.close()
    assert process.wait() == 0
    assert process.stdout.read() == ""
    process.stdout.close()


def test_run_without_input_prints_nothing(root: Path) -> None:
    assert run(root, "") == []


def test_run_bad_option_is_usage_error() -> None:
    assert usage_error(handrail("run", "--approve", "perhaps")).startswith("Invalid value for '--approve'")
