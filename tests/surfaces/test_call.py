"""Tests `handrail call` as a user or a script runs it."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.command_line import ARGV, at_terminal, envelope, handrail, timeless, usage_error

from handrail import Workspace


def test_call_prints_result_and_location(root: Path) -> None:
    done = handrail("call", "file.write", "path=a/hello.txt", "content=Hello", "--root", str(root), "--approve", "auto")
    assert timeless(done.stdout) == (
        f"✓ file.write\n  success: true\n  bytes_written: 5\n  Location: {root}/a/hello.txt\n  Time: <time>\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (root / "a/hello.txt").read_text() == "Hello"


def test_call_json_prints_one_document(root: Path) -> None:
    (root / "é.txt").write_text("naïve\u2028\n")
    done = handrail("call", "file.read", '{"path": "é.txt"}', "--json", "--root", str(root))
    assert envelope(done.stdout) == {
        "tool": "file.read",
        "success": True,
        "output": {"content": "     1\tnaïve\u2028", "total_lines": 1, "truncated": False},
        "files_affected": [],
    }
    assert done.stdout.count("\n") == 1
    assert "naïve\\u2028" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_call_error_result_exits_with_1(root: Path) -> None:
    done = handrail("call", "file.read", "path=missing.txt", "--root", str(root))
    assert timeless(done.stdout) == (
        "✗ 'missing.txt' does not exist\n"
        "  Suggestion: Check the path, or list the directory first\n"
        "  Code: file_not_found\n"
        "  Time: <time>\n"
    )
    assert (done.returncode, done.stderr) == (1, "")


def test_call_json_error_has_code_message_and_suggestion(root: Path) -> None:
    done = handrail("call", "file.read", "path=missing.txt", "--root", str(root), "--json")
    assert envelope(done.stdout) == {
        "tool": "file.read",
        "success": False,
        "output": {"error": "file_not_found", "message": "'missing.txt' does not exist"},
        "files_affected": [],
        "error": {
            "code": "file_not_found",
            "message": "'missing.txt' does not exist",
            "suggestion": "Check the path, or list the directory first",
        },
    }
    assert done.returncode == 1


def test_call_without_terminal_denied_and_log_says_how_to_allow(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = handrail("call", "file.write", "path=it's.txt", "content=x", "--root", str(root), "--log", str(log))
    assert timeless(done.stdout) == (
        "✗ file.write was not approved: no approver can be asked\n"
        "  Suggestion: Ask the user: only they can allow it\n"
        "  Code: approval_denied\n"
        "  Time: <time>\n"
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert to_allow(log) == (
        "Run this command in a terminal, or with --approve auto, or keep a rule: "
        "handrail approvals add 'edit '\"'\"'it'\"'\"'\"'\"'\"'\"'\"'\"'s.txt'\"'\"'' "
        f"--root {root}"
    )
    assert not list(root.iterdir())


def to_allow(log: Path) -> str:
    """Return what the session log tells the user about the last call."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return str(next(line["allow"] for line in reversed(lines) if line["event"] == "refusal"))


def test_call_logged_remedy_allows_that_file_only(root: Path, tmp_path: Path) -> None:
    odd = root / "it's $a `root`"
    odd.mkdir()
    call = ("call", "file.write", "path=it's $x `y`.txt", 'content=a\n"b" \\ é', "--root")
    do_what_is_told(tmp_path / "log", *call, str(odd))
    assert handrail(*call, str(odd)).returncode == 0
    assert handrail("call", "file.write", "path=other.txt", "content=x", "--root", str(odd)).returncode == 3
    assert handrail(*call, str(root)).returncode == 3
    assert [path.name for path in odd.iterdir()] == ["it's $x `y`.txt"]


def test_call_logged_remedy_does_not_hold_in_weaker_sandbox(root: Path, tmp_path: Path) -> None:
    call = ("call", "run_shell_command", "command=echo a", "--dialect", "gemini", "--root", str(root), "--sandbox")
    do_what_is_told(tmp_path / "log", *call, "network")
    assert [handrail(*call, level).returncode for level in ("off", "network")] == [3, 0]


@pytest.mark.parametrize("path", ["x\u202ey", "x" * 200 + "/" + "y" * 200], ids=["not seen whole", "long"])
def test_call_logged_remedy_omits_calls_that_cannot_be_pasted(root: Path, tmp_path: Path, path: str) -> None:
    log = tmp_path / "log"
    content = "z" * 400
    done = handrail("call", "file.write", f"path=.{path}", f"content={content}", "--root", str(root), "--log", str(log))
    assert done.returncode == 3
    assert (
        to_allow(log)
        == "Run this command in a terminal, or with --approve auto, or add a rule with `handrail approvals add`"
    )


def do_what_is_told(log: Path, *call: str) -> None:
    """Run, at a terminal, the command that the log suggests for a denied call."""
    assert handrail(*call, "--log", str(log)).returncode == 3
    command = shlex.split(to_allow(log).partition("keep a rule: ")[2])
    assert command[0] == "handrail"
    assert at_terminal(*command[1:]).returncode == 0


def test_call_approve_never_denies(root: Path) -> None:
    done = handrail("call", "file.write", "path=a", "content=x", "--root", str(root), "--approve", "never", "--json")
    assert done.returncode == 3
    assert envelope(done.stdout)["error"] == {
        "code": "approval_denied",
        "message": "file.write was not approved: the policy is never",
        "suggestion": "Ask the user: only they can allow it",
    }


def test_call_dash_reads_parameters_from_stdin(root: Path) -> None:
    done = handrail(
        "call", "file.write", "-", "--root", str(root), "--approve", "auto", stdin='{"path": "ü", "content": "ß\\n"}'
    )
    assert done.returncode == 0
    assert (root / "ü").read_text() == "ß\n"


def test_call_key_value_is_text_or_json_by_schema(root: Path) -> None:
    lines = "".join(f"{n}\n" for n in range(1, 10))
    written = handrail("call", "file.write", "path=123", f"content={lines}", "--approve", "auto", "--root", str(root))
    assert written.returncode == 0
    read = handrail("call", "file.read", "path=123", "offset=8", "limit=null", "--root", str(root), "--json")
    assert envelope(read.stdout)["output"] == {"content": "     8\t8\n     9\t9", "total_lines": 9, "truncated": False}
    patch = 'patches=[{"find": "8\\n9", "replace": "8=eight"}]'
    done = handrail("call", "file.patch", "path=123", patch, "--root", str(root), "--approve", "auto")
    assert done.returncode == 0
    assert (root / "123").read_text().endswith("7\n8=eight\n")


def test_call_wrong_value_is_error_result(root: Path) -> None:
    done = handrail("call", "file.read", "path=a", "offset=soon", "what=ever", "--root", str(root), "--json")
    assert done.returncode == 1
    assert envelope(done.stdout)["error"]["message"] == (
        "Parameter 'offset' must be an integer, not string; Unknown parameter 'what'; expected path, offset, limit"
    )


def test_call_unknown_tool_names_known_tools(root: Path) -> None:
    done = handrail("call", "file.rename", "--dialect", "file", "--root", str(root), "--json")
    assert done.returncode == 1
    assert envelope(done.stdout)["error"] == {
        "code": "unknown_tool",
        "message": "Unknown tool 'file.rename'",
        "suggestion": f"The nearest tool is file.read. Use one of: {', '.join(_file_tools())}",
    }


def _file_tools() -> list[str]:
    from handrail.dialects import load

    return list(load("file").tools)


def test_call_read_only_refuses_writing_tool(root: Path) -> None:
    (root / "a").write_text("a")
    done = handrail("call", "file.delete", "path=a", "--root", str(root), "--read-only", "--approve", "auto")
    assert done.returncode == 3
    assert done.stdout.startswith("✗ file.delete was not approved: the workspace is open for reading only\n")
    assert (root / "a").exists()
    assert handrail("call", "file.read", "path=a", "--root", str(root), "--read-only").returncode == 0


def test_call_root_defaults_to_current_directory(root: Path) -> None:
    (root / "here.txt").write_text("here\n")
    done = handrail("call", "file.list", "--json", cwd=root)
    assert [file["path"] for file in envelope(done.stdout)["output"]["files"]] == ["here.txt"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("file.read", "{"), "the parameters are not valid JSON: "),
        (("file.read", '{"path": 1e}'), "the parameters are not valid JSON: "),
        (("file.read", "["), "the parameters are not valid JSON: "),
        (("file.read", "[" * 100_000), "the parameters are not valid JSON: "),
        (("file.read", "-"), "the parameters are not valid JSON: "),
        (("file.read", "hello.txt"), "expected KEY=VALUE, not 'hello.txt'"),
        (("file.read", "-", "path=x"), "expected KEY=VALUE, not '-'"),
        (("file.read", "--dialect", "cobol"), "Invalid value for '--dialect': 'cobol' is not "),
        (("file.read", "--approve", "maybe"), "Invalid value for '--approve': 'maybe' is not one of "),
        (("file.read", "--frobnicate"), "No such option"),
        ((), "Missing argument 'TOOL'."),
    ],
    ids=["open brace", "bad number", "open bracket", "deep", "no input", "no key", "dash and more", "dialect", "policy",
         "option", "no tool"],
)  # fmt: skip
def test_call_bad_command_line_exits_with_2(arguments: tuple[str, ...], complaint: str) -> None:
    assert usage_error(handrail("call", *arguments)).startswith(complaint)


def test_call_stdin_not_utf8_is_usage_error() -> None:
    assert usage_error(handrail("call", "file.read", "-", stdin=b'{"path": "\xff"}')).startswith(
        "the parameters are not valid JSON: "
    )


def test_call_missing_root_or_file_as_root_is_usage_error(root: Path) -> None:
    (root / "file").write_text("")
    assert usage_error(handrail("call", "file.list", "--root", f"{root}/none")) == (
        f"cannot open the workspace {root}/none: directory not found"
    )
    assert usage_error(handrail("call", "file.list", "--root", f"{root}/file")) == (
        f"cannot open the workspace {root}/file: it is not a directory"
    )


def test_call_undecodable_argument_is_answered_in_utf8(root: Path) -> None:
    done = handrail("call", "file.read", os.fsdecode(b"path=\xff"), "--root", str(root), "--json")
    assert envelope(done.stdout)["error"]["message"] == (
        "Parameter 'path' must be valid Unicode text (it contains a lone surrogate)"
    )
    unknown = handrail("call", os.fsdecode(b"tool\xff"), "--root", str(root), "--json")
    assert envelope(unknown.stdout)["tool"] == "tool\udcff"


def test_call_json_is_utf8_in_any_locale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (root / "é").write_text("日本\n")
    done = handrail("call", "file.read", "-", "--root", str(root), "--json", stdin='{"path": "é"}')
    assert envelope(done.stdout)["output"]["content"] == "     1\t日本"
    assert done.returncode == 0


def test_call_notes_go_to_stderr(root: Path) -> None:
    (root / ".handrail.toml").write_text('approve = "auto"\n')
    done = handrail("call", "file.list", "--root", str(root), "--json")
    assert done.stderr == "handrail: .handrail.toml cannot set approve = 'auto': a project may only tighten\n"
    assert envelope(done.stdout)["success"] is True


def test_call_log_option_sets_log_file(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "session.jsonl"
    handrail("call", "file.list", "--root", str(root), "--log", str(log))
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["event"], line["tool"], line["params"]) == ("request", "file.list", {})
    assert usage_error(handrail("call", "file.list", "--root", str(root), "--log", str(tmp_path))) == (
        f"log: {tmp_path} cannot be written: Is a directory"
    )


def test_call_reports_rolled_back_write_of_killed_process(root: Path) -> None:
    """Leave the intent of a killed process behind: the next open rolls it back."""
    workspace = Workspace(str(root), approve="auto")
    record = workspace._services.writer._intents.begin(workspace._services.boundary.identity)
    record.made.append("half-made")
    (root / "half-made").mkdir()
    record.save(sync=False)
    workspace._services.writer._intents.leave()
    workspace.close()
    done = handrail("call", "file.list", "--root", str(root), "--json")
    assert done.stderr == "handrail: rolled back 1 interrupted write(s)\n"
    assert envelope(done.stdout)["output"] == {"files": [], "directories": []}


def test_help_lists_commands_and_version_is_printed() -> None:
    assert handrail("--version").stdout == "handrail, version 0.1.0\n"
    done = handrail("--help")
    assert done.returncode == 0
    for command in ("call", "run", "tools", "approvals", "doctor", "demo", "completion"):
        assert f"\n  {command} " in done.stdout
    assert usage_error(handrail("frobnicate")) == "No such command 'frobnicate'."


def test_call_ambiguous_tool_needs_dialect(root: Path) -> None:
    assert usage_error(handrail("call", "read_file", "path=a", "--root", str(root))) == (
        "several dialects have read_file; choose one with --dialect: gemini, context, copilot, codex, gemini-3"
    )


@pytest.mark.parametrize(
    "arguments", [("--version",), ("tools",), ("call", "file.list", "--json"), ("call", "file.list")]
)
def test_call_unwritable_stdout_is_reported_without_traceback(arguments: tuple[str, ...], root: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*ARGV, *arguments], stdout=full, stderr=subprocess.PIPE, cwd=root, check=False)
    said = "handrail: cannot write the answer: No space left on device\n"
    assert (done.returncode, done.stderr.decode()) == (1, said)


def test_call_json_unknown_option_is_json_error() -> None:
    done = handrail("call", "file.read", "--json", "--frobnicate")
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "usage_error")


def test_call_validate_runs_nothing_and_says_what_is_wrong(root: Path) -> None:
    good = handrail("call", "file.write", "path=a", "content=b", "--validate", "--root", str(root))
    assert (good.returncode, good.stdout) == (0, "✓ file.write: the call is valid; nothing was run\n")
    assert not (root / "a").exists()
    bad = handrail("call", "file.write", "path=../a", "content=b", "--validate", "--json", "--root", str(root))
    assert bad.returncode == 1
    assert json.loads(bad.stdout) == {
        "tool": "file.write",
        "valid": False,
        "error": {
            "code": "path_outside_workspace",
            "message": "Path '../a' is outside the workspace",
            "suggestion": "Use a path inside the workspace, relative to its root",
        },
    }
