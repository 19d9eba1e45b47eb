"""Implements `handrail demo`: plays a short scripted agent session on a sample workspace."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from textwrap import wrap
from typing import Any, NamedTuple

import click

from handrail.kernel.host.scratch import scratch_workspace
from handrail.kernel.host.session_log import only_log
from handrail.kernel.host.terminal import wants_colour
from handrail.model.approval import Question, Verdict
from handrail.model.record import record
from handrail.surfaces.approval_text import QuestionView, happening
from handrail.surfaces.cli.render import human
from handrail.tools.tool import ToolResult
from handrail.workspace import Workspace

WIDTH = 100
"""Columns; longer lines are wrapped."""

SAMPLE = {
    "shop/prices.py": "def total(prices, vat=0.19):\r\n    return sum(prices) * vat\r\n",
    "shop/__init__.py": "",
    "notes.txt": "call the printer\n",
}


class Scene(NamedTuple):
    """Holds one call of the demo session."""

    remark: str
    dialect: str
    tool: str
    params: dict[str, Any]
    answer: str = "y"
    """The user's answer if the call needs approval."""


SCENES = [
    Scene("The total is wrong. Where is VAT used?", "copilot", "grep_search", {"pattern": "vat"}),
    Scene(
        "VAT must be added. One line changes; the CRLF line ends stay.",
        "file",
        "file.patch",
        {"path": "shop/prices.py", "patches": [{"find": "* vat", "replace": "* (1 + vat)"}]},
    ),
    Scene("A password would be handy. (Models make mistakes.)", "file", "file.read", {"path": "../../etc/shadow"}),
    Scene(
        "Does it work? (Commands run in a sandbox.)",
        "codex",
        "shell",
        {"command": "python3 -c 'from shop.prices import total; print(total([100]))'; touch /etc/x"},
    ),
    Scene("Tidy up.", "context", "delete_file", {"path": "notes.txt"}, answer="n"),
]

_COLOURS = {"+": "green", "-": "red"}
_LEFT_OUT = ("diff ", "--- ", "+++ ", "@@ ", "Command: ", "Directory: ", "  success: ", "  Code: ", "  Time: ")
"""Prefixes of lines that the demo leaves out because they repeat other lines or are not needed here."""


@record
class Stage:
    """Plays scenes and writes what the user would see."""

    write: Callable[[str], None]
    answer: str = ""

    def show(self, text: str, **style: Any) -> None:
        for line in text.split("\n"):
            for part in wrap(line, WIDTH, subsequent_indent="    ", replace_whitespace=False) or [""]:
                self.write(click.style(part, **style) if part else "")

    def approve(self, question: Question) -> Verdict:
        for line in happening(question, QuestionView(40)):
            if not line.startswith(_LEFT_OUT):
                self.show(f"  {line}", fg=_COLOURS.get(line[:1]))
        self.show(f"  Approve? (y/n/s/a/e): {self.answer}", bold=True)
        if self.answer == "y":
            return Verdict(True, "user")
        return Verdict(False, "user", reason="the user said no", remedy="Ask what to do instead")

    def play(self, workspace: Workspace, scene: Scene) -> None:
        self.show(f"\n● {scene.remark}", bold=True)
        self.show(f"→ {scene.tool} {json.dumps(scene.params)}", fg="cyan")
        self.answer = scene.answer
        result = workspace.tools(scene.dialect).call(scene.tool, scene.params)
        for line in _in_short(result):
            self.show(line, fg="green" if result.success and not line.startswith("  Warning: ") else "yellow")


def _in_short(result: ToolResult) -> list[str]:
    """Return the lines that `handrail call` prints for a result, without empty fields, times and locations."""
    output = result.output
    if not isinstance(output, str):
        stripped = {key: value.strip("\n") if isinstance(value, str) else value for key, value in output.items()}
        output = {key: value for key, value in stripped.items() if value not in ("", None, []) and value is not False}
    lines = human(replace(result, output=output, files_affected=[]), "").split("\n")
    return [line for line in lines if not line.startswith(_LEFT_OUT)]


@click.command("demo")
def command() -> None:
    """Show a short scripted agent session on a sample workspace. It needs no key and no network."""
    colour = wants_colour(sys.stdout)
    play(lambda line: click.echo(line, color=colour))


def play(write: Callable[[str], None]) -> None:
    """Play the session and pass each line, with ANSI colours, to `write`."""
    stage = Stage(write)
    with (
        scratch_workspace(SAMPLE) as root,
        Workspace(root, approver=stage.approve, tell=only_log, approve="ask", log_level="off", hooks={}) as workspace,
    ):
        stage.show("Handrail plays an agent session in a sample workspace. The answers are typed for you.", dim=True)
        for scene in SCENES:
            stage.play(workspace, scene)
        stage.show(
            "\nNo data left the workspace, and nothing changed without approval. Next: handrail --help", dim=True
        )
