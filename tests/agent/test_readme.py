"""Tests the example of the README that runs the agent without a model, as it is written."""

import re
import shlex
from pathlib import Path

from support.command_line import ARGV
from support.documents import HOME, fences, text
from support.pseudo_terminal import Terminal


def test_readme_example_asks_and_writes_file(root: Path) -> None:
    example = re.findall(r"^(?:echo .*|handrail agent .*scripted:.*)$", text("README.md"), re.MULTILINE)
    program = f'cd "{root}"; handrail() {{ {shlex.join(ARGV)} "$@"; }}; ' + "\n".join(example)
    with Terminal("/bin/sh", "-c", program) as terminal:
        assert "+hi" in terminal.until("Approve? (y/n/s/a/e): ")
        terminal.send("y")
        status, out, _ = terminal.finish()
    assert (len(example), status, out) == (2, 0, "The script has ended.\n")
    assert (root / "hi").read_text() == "hi"


def test_documented_script_is_the_shipped_one() -> None:
    assert fences("docs/agent.md", "json")[0].strip() == (HOME / "docs/hello.jsonl").read_text().strip()
