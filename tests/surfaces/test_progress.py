"""Tests colours and the progress line of a long call, which only a terminal gets."""

import json
import os
import re
from pathlib import Path

import pytest
from support.command_line import ARGV, envelope, handrail, in_process
from support.pseudo_terminal import Terminal

PROMPT = "Approve? (y/n/a/e): "
LINE = "\r\x1b[K… run_in_terminal "
SLOW = {"command": "sleep 2; echo done"}
WAITING = {"command": "cat go; echo done"}


@pytest.fixture(autouse=True)
def terminal_that_can_erase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("SHELL", "/bin/sh")


@pytest.fixture
def go(root: Path) -> Path:
    """Return the file that WAITING waits for."""
    os.mkfifo(root / "go")
    return root / "go"


def calling(params: dict[str, str], root: Path, *flags: str) -> tuple[str, ...]:
    return (*ARGV, "call", "run_in_terminal", json.dumps(params), "--root", str(root), *flags)


def test_progress_long_call_shows_and_erases_line(root: Path, go: Path) -> None:
    with Terminal(*calling(WAITING, root, "--json", "--approve", "auto")) as terminal:
        terminal.until(LINE)
        go.write_text("")
        status, out, rest = terminal.finish()
    assert (status, envelope(out)["output"]) == (0, "Command output:\ndone\n")
    assert re.fullmatch(r"\d+s(\r\x1b\[K… run_in_terminal \d+s)*\r\x1b\[K", rest)


def test_progress_line_hidden_during_question(root: Path, go: Path) -> None:
    with Terminal(*calling(WAITING, root, "--json")) as terminal:
        assert "…" not in terminal.until(PROMPT).rpartition("\r\x1b[K")[2]
        terminal.send("y\n")
        terminal.until(LINE)
        go.write_text("")
        assert terminal.finish()[0] == 0


def test_progress_run_shows_line(root: Path, go: Path) -> None:
    line = json.dumps({"tool": "run_in_terminal", "params": WAITING}).encode() + b"\n"
    with Terminal(*ARGV, "run", "--approve", "auto", "--root", str(root), stdin=line) as terminal:
        terminal.until(LINE)
        go.write_text("")
        status, out, rest = terminal.finish()
    assert (status, envelope(out)["success"]) == (0, True)
    assert rest.endswith("\r\x1b[K")


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_progress_terminal_without_erase_gets_no_line(root: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", kind)
    with Terminal(*calling(SLOW, root, "--json", "--approve", "auto")) as terminal:
        assert terminal.finish()[::2] == (0, "")


def test_progress_without_terminal_prints_only_document(root: Path) -> None:
    (root / ".handrail.toml").write_text('approve = "auto"\n')
    done = handrail(*calling(SLOW, root, "--json", "--approve", "auto")[len(ARGV) :])
    assert envelope(done.stdout)["success"]
    assert done.stdout.count("\n") == 1
    assert done.stderr == "handrail: .handrail.toml cannot set approve = 'auto': a project may only tighten\n"


@pytest.mark.parametrize(
    ("dialect", "tool", "params"),
    [
        ("gemini", "list_directory", {"path": "{root}"}),
        ("context", "list_directory", {}),
        ("copilot", "list_dir", {}),
        ("file", "file.list", {}),
        ("codex", "list_dir", {}),
        ("gemini", "read_file", {"absolute_path": "{root}/none"}),
        ("context", "read_file", {"path": "none"}),
        ("copilot", "read_file", {"path": "none"}),
        ("file", "file.read", {"path": "none"}),
        ("codex", "read_file", {"path": "none"}),
    ],
)
def test_call_text_and_json_agree_in_every_dialect(root: Path, dialect: str, tool: str, params: dict[str, str]) -> None:
    given = json.dumps(params).replace("{root}", str(root))
    argv = ("call", tool, given, "--dialect", dialect, "--root", str(root))
    as_json, human = in_process(*argv, "--json"), in_process(*argv)
    answer = envelope(as_json.stdout)
    assert (answer["tool"], as_json.returncode, human.returncode) == (tool, *[0 if answer["success"] else 1] * 2)
    lines = human.stdout.split("\n")
    assert lines[0].startswith("✓ " if answer["success"] else "✗ ")
    assert lines[-2].startswith("  Time: ")
    if not answer["success"]:
        assert answer["error"]["message"].split("\n")[0] in lines[0]
        assert f"  Code: {answer['error']['code']}" in lines
        assert any(line.startswith("  Suggestion: ") for line in lines)


def test_render_marks_are_coloured_only_if_asked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from handrail import ToolResult
    from handrail.surfaces.cli.render import human
    from handrail.tools.messages import ToolError

    fine = ToolResult("t", True, "done", [], 1.0)
    failed = ToolResult("t", False, "Error: no", [], 1.0, error=ToolError("no", "no", ""))
    assert human(fine, "/", colour=True).startswith("\x1b[32m✓\x1b[0m done\n")
    assert human(failed, "/", colour=True).startswith("\x1b[31m✗\x1b[0m Error: no\n")
    monkeypatch.delenv("NO_COLOR")
    piped = handrail("call", "list_dir", "{}", "--dialect", "copilot", "--root", str(root)).stdout
    assert "\x1b" not in piped
