"""Tests the command line with closed standard streams and with terminals that do not use UTF-8."""

import json
import subprocess
from pathlib import Path

import pytest
from support.command_line import ARGV
from support.pseudo_terminal import Terminal

CALL = ("call", "file.write", "path=a.txt", "content=✓", "--approve", "auto")
COMMANDS = {
    "call": (CALL, 0),
    "refused": ((*CALL[:-1], "never"), 3),
    "standard input": (("call", "file.read", "-"), 2),
    "run": (("run",), 0),
    "tools": (("tools", "--dialect", "file"), 0),
    "doctor": (("doctor", "--sandbox", "off"), 0),
    "mcp": (("mcp",), 0),
    "unknown": (("nonsense",), 2),
}
CLOSED = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")


def run(root: Path, arguments: tuple[str, ...], closing: str = "") -> "subprocess.CompletedProcess[bytes]":
    script = f'exec "$@" {closing}'
    argv = ["sh", "-c", script, "sh", *ARGV, *arguments]
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, cwd=root, check=False)


@pytest.mark.parametrize("closing", CLOSED)
@pytest.mark.parametrize("command", [*COMMANDS])
def test_cli_closed_streams_do_not_fail(root: Path, command: str, closing: str) -> None:
    arguments, status = COMMANDS[command]
    done = run(root, arguments, closing)
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False)
    if command == "call":
        assert (root / "a.txt").read_text() == "✓"


@pytest.mark.parametrize("command", [*COMMANDS])
def test_cli_unencodable_output_is_escaped(root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    arguments, status = COMMANDS[command]
    done = run(root, arguments)
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False)
    if command == "call":
        assert done.stdout.startswith(b"\\u2713 file.write\n")


@pytest.mark.parametrize(
    ("closing", "encoding"), [("<&-", "utf-8"), ("2>&-", "utf-8"), ("", "latin-1"), ("", "ascii"), (">&-", "utf-8")]
)
def test_demo_closed_stream_or_other_encoding_plays_to_end(
    root: Path, closing: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    done = run(root, ("demo",), closing)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert (b"Next: handrail --help" in done.stdout) is (closing != ">&-")


def test_question_uses_encoding_of_terminal(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    monkeypatch.setenv("TERM", "dumb")
    argv = [*ARGV, "call", "file.write", "path=a", "content=ü✓", "--root", str(root), "--json"]
    with Terminal(*argv, encoding="latin-1") as terminal:
        assert "+ü\\u2713\n" in terminal.until("Approve? (y/n/a/e): ")
        terminal.send("n schön\n")
        status, out, _ = terminal.finish()
    assert status == 3
    assert json.loads(out)["error"]["message"] == "file.write was not approved: the user said no: schön"
