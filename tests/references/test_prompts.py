"""Answers the prompts of real programs in a terminal: `npm init`, and those of inquirer, enquirer and prompts."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace

PACKAGES = Path(sys.prefix, "prompts-1")
NODE = Path(sys.prefix, "bin", "node")
PATIENCE = 12
ENTER, DOWN = "\r", "\x1b[B"
NAME, COLOUR = "What is your name", "Which colour"
SCRIPTS = {
    "inquirer": """const inquirer = require('inquirer').default;
        inquirer.prompt([
          { type: 'input', name: 'name', message: 'What is your name' },
          { type: 'select', name: 'colour', message: 'Which colour', choices: ['red', 'blue'] },
        ]).then(done);""",
    "enquirer": """const { prompt } = require('enquirer');
        prompt([
          { type: 'input', name: 'name', message: 'What is your name' },
          { type: 'select', name: 'colour', message: 'Which colour', choices: ['red', 'blue'] },
        ]).then(done);""",
    "prompts": """const prompts = require('prompts');
        prompts([
          { type: 'text', name: 'name', message: 'What is your name' },
          { type: 'select', name: 'colour', message: 'Which colour',
            choices: [{ title: 'red', value: 'red' }, { title: 'blue', value: 'blue' }] },
        ]).then(done);""",
}
pytestmark = pytest.mark.skipif(
    not (PACKAGES / "installed").exists(), reason="the prompts are not installed; make test-references installs them"
)


class Typist:
    """Starts a program in a terminal and types into it, through the tools of `codex-2026`."""

    def __init__(self, workspace: Workspace, command: str) -> None:
        self._tools, self._shown = workspace.tools("codex-2026"), ""
        self._session: int | None = None
        self._take(self._tools.call("exec_command", {"cmd": command, "tty": True, "yield_time_ms": 3000}))

    def expect(self, text: str) -> None:
        """Wait until the program prints a text after what was expected before."""
        for _ in range(PATIENCE):
            if text in self._shown:
                self._shown = self._shown.partition(text)[2]
                return
            assert self._session is not None, f"{text} did not come: {self._shown!r}"
            self._write("")
        raise AssertionError(f"{text} did not come: {self._shown!r}")

    def type_until_end(self, text: str) -> None:
        """Type a text again and again until the program has ended."""
        for _ in range(5 * PATIENCE):
            if self._session is None:
                return
            self._write(text)
        raise AssertionError(f"the program did not end: {self._shown!r}")

    def type(self, text: str) -> None:
        self._write(text)

    def _write(self, text: str) -> None:
        given = {"session_id": self._session, "chars": text, "yield_time_ms": 1000 if text else 5000}
        self._take(self._tools.call("write_stdin", given))

    def _take(self, result: Any) -> None:
        assert result.success, result
        self._shown += result.output["output"]
        self._session = result.output.get("session_id")


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace(str(root), approve="auto", readable=[sys.prefix]) as opened:
        yield opened


@pytest.mark.sandbox
@pytest.mark.parametrize("package", SCRIPTS)
def test_prompts_of_package_are_answered_and_do_not_hang(package: str, workspace: Workspace, root: Path) -> None:
    (root / "ask.cjs").write_text(
        f"const require_ = require('node:module').createRequire('{PACKAGES}/x.js');\n"
        "const done = (said) => console.log('answers ' + JSON.stringify(said));\n"
        f"((require) => {{ {SCRIPTS[package]} }})(require_);\n"
    )
    typist = Typist(workspace, f"'{NODE}' ask.cjs")
    typist.expect(NAME)
    typist.type("Ada")
    typist.type(ENTER)
    typist.expect(COLOUR)
    typist.type(DOWN)
    typist.type(ENTER)
    typist.expect('answers {"name":"Ada","colour":"blue"}')


@pytest.mark.sandbox
def test_npm_init_is_answered_and_writes_its_file(workspace: Workspace, root: Path) -> None:
    typist = Typist(workspace, f"'{NODE.with_name('npm')}' init --offline")
    for question, answer in (("package name", "my-package"), ("version", "2.0.0")):
        typist.expect(question)
        typist.type(answer + ENTER)
    typist.expect("description")
    typist.type_until_end(ENTER)  # the other questions have answers already
    made = json.loads((root / "package.json").read_text())
    assert (made["name"], made["version"]) == ("my-package", "2.0.0")
