"""Tests that commands which run without click read their arguments as click does, and leave it the rest."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from support.command_line import handrail, timeless

from handrail.surfaces.cli import call, mcp
from handrail.surfaces.cli.light import call_tool, serve_mcp
from handrail.surfaces.cli.light.light_words import FLAG, TEXT, Ordinary

COMMANDS: dict[str, tuple[Any, Ordinary]] = {
    "call": (call.command, call_tool.ORDINARY),
    "mcp": (mcp.command, serve_mcp.ORDINARY),
}
PLAIN = (
    ("call", "file.read", "path=a.txt", "--root", "here"),
    ("call", "--json", "--root=here", "file.read", '{"path": "a"}', "--validate"),
    ("call", "shell", "-", "--root", "--odd", "--network", "a.b", "--network=c.d", "--approve", "auto", "--log", "l"),
    ("call", "file.read", "--root", "here", "--read-only", "--preset", "edit", "--sandbox", "off", "--dialect", "file"),
    ("mcp", "--root", "one", "--root", "two", "--dialect=codex", "--tools", "a,b", "--safe-names", "--with-undo"),
    ("mcp", "--http", "127.0.0.1:0", "--no-token", "--allow-host", "a", "--allow-host", "b", "--token-file", "f"),
    ("mcp",),
)
LEFT = (
    ("call",),
    ("call", "--help"),
    ("call", "-h"),
    ("call", "file.read", "--", "--root"),
    ("call", "file.read", "--root"),
    ("call", "file.read", "--root", "a", "--root", "b"),
    ("call", "file.read", "--json=yes"),
    ("call", "file.read", "--approve", "sometimes"),
    ("call", "file.read", "--dialect", "auto", "--model", "gpt-6"),
    ("call", "file.read", "--unknown"),
    ("mcp", "surplus"),
    ("mcp", "--dialect", "nearly"),
)


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_ordinary_words_are_read_as_click_reads_them(words: tuple[str, ...]) -> None:
    command, ordinary = COMMANDS[words[0]]
    read = ordinary.read([*words[1:]])
    assert read is not None
    parsed = command.make_context(words[0], [*words[1:]]).params
    parsed.pop("model")
    assert {name: value or None for name, value in read.items()} == {name: parsed[name] or None for name in parsed}


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_words_that_are_not_ordinary_are_left_to_click(words: tuple[str, ...]) -> None:
    assert COMMANDS[words[0]][1].read([*words[1:]]) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_those_of_click(name: str) -> None:
    command, ordinary = COMMANDS[name]
    known = {each.opts[0]: each for each in command.params if isinstance(each, click.Option)}
    assert known.keys() - ordinary.options.keys() <= {"--model"}
    for spelled, option in ordinary.options.items():
        found = known[spelled]
        assert (found.name, found.multiple, found.is_flag) == (option.name, option.many, option.kind == FLAG)
        if option.kind not in (FLAG, TEXT):
            assert isinstance(found.type, click.Choice)
            assert {*option.kind} <= {*found.type.choices}


ERRORS = (
    ("call", "file.read", "path"),
    ("call", "file.read", "{bad", "--json"),
    ("call", "no.such", "a=1"),
    ("call", "file.read", "path=gone", "--json", "--root", "/no/such/place"),
    ("mcp", "--tools", "nope"),
    ("mcp", "--http", "nowhere", "--no-token"),
)


@pytest.mark.parametrize("words", ERRORS, ids=" ".join)
def test_error_without_click_reads_as_with_click(words: tuple[str, ...], root: Path) -> None:
    with_click = "from handrail.surfaces.cli.click_commands import main; main(prog_name='handrail')"
    expected = subprocess.run(
        [sys.executable, "-P", "-c", with_click, *words], capture_output=True, text=True, cwd=root, check=False
    )
    done = handrail(*words, cwd=root)
    assert (done.returncode, timeless(done.stdout)) == (expected.returncode, timeless(expected.stdout))
    assert timeless(done.stderr) == timeless(expected.stderr)


def test_call_without_click_finds_workspace_and_says_which(root: Path) -> None:
    (root / ".git").mkdir()
    (root / "below").mkdir()
    (root / "a.txt").write_text("one\n")
    done = handrail("call", "file.read", "path=a.txt", cwd=root / "below")
    assert (done.returncode, "using the workspace" in done.stderr) == (0, True)
    assert "1\tone" in done.stdout


def test_call_imports_no_click(root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    words = ["-X", "importtime", "-P", "-m", "handrail", "call", "file.read", "path=a.txt", "--root", str(root)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.split("\n") if line.startswith("import time:")}
    assert "handrail.surfaces.cli.light.plain_output" in loaded
    assert loaded & {"click", "asyncio", "logging", "subprocess", "tempfile"} == set()
