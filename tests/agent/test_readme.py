"""Tests the example of the README that runs the agent without a model, as it is written."""

import re
import shlex
from pathlib import Path

from support.command_line import ARGV
from support.documents import HOME, fences, text
from support.pseudo_terminal import Terminal

SCRIPT = "docs/hello.jsonl"


def test_readme_example_asks_and_writes_file(root: Path) -> None:
    (line,) = re.findall(r"^handrail (agent .*scripted:.*)$", text("README.md"), re.MULTILINE)
    assert SCRIPT in line
    words = shlex.split(line.replace(SCRIPT, str(HOME / SCRIPT)), comments=True)
    with Terminal(*ARGV, *words, "--root", str(root)) as terminal:
        assert "+hello" in terminal.until("Approve? (y/n/s/a/e): ")
        terminal.send("y")
        status, out, _ = terminal.finish()
    assert (status, out) == (0, "I wrote hello.txt. `handrail undo` takes it back.\n")
    assert (root / "hello.txt").read_text() == "hello\n"


def test_documented_script_is_the_shipped_one() -> None:
    assert fences("docs/agent.md", "json")[0].strip() == (HOME / SCRIPT).read_text().strip()
