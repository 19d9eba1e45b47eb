"""`handrail demo`: a short scripted agent session on a sample workspace. No key, no network."""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import click

from handrail.kernel.gate import Question, Verdict
from handrail.kernel.log import only_log
from handrail.kernel.scratch import nowhere, scratch_workspace
from handrail.ops.show import one_line
from handrail.surfaces.cli.asking import View, display, happening
from handrail.surfaces.cli.show import human
from handrail.workspace import Workspace

if TYPE_CHECKING:
    from rich.console import Console

_FONT = re.compile(r"@font-face \{[^}]*\}")

SAMPLE = {
    "shop/prices.py": (
        'VAT = 0.19\r\n\r\n\r\ndef total(prices):\r\n    """The sum with VAT."""\r\n    return sum(prices) * VAT\r\n'
    ),
    "shop/__init__.py": "",
    "README.md": "# Shop\n\nA very small shop.\n",
    "notes.txt": "call the printer\n",
}


@dataclass(frozen=True)
class Scene:
    says: str
    dialect: str
    tool: str
    params: dict[str, Any]
    answer: str = "y"
    """What the person types if the call asks."""


SCENES = [
    Scene("The total is wrong. Where is it worked out?", "context", "grep", {"pattern": "VAT", "context_lines": 0}),
    Scene("The whole file, then.", "file", "file.read", {"path": "shop/prices.py"}),
    Scene(
        "VAT must be added, not multiplied. One line changes; the CRLF line ends stay.",
        "file",
        "file.patch",
        {"path": "shop/prices.py", "patches": [{"find": "* VAT", "replace": "* (1 + VAT)"}]},
    ),
    Scene(
        "A key would be handy. (The model is not always right.)",
        "file",
        "file.read",
        {"path": "../../../../etc/shadow"},
    ),
    Scene(
        "Does it work? (Commands run in a sandbox: no network, nothing outside the workspace.)",
        "codex",
        "shell",
        {"command": "python3 -c 'from shop.prices import total; print(total([100]))'; touch /etc/mine"},
    ),
    Scene(
        "A changelog, as a patch.",
        "codex",
        "apply_patch_freeform",
        {
            "patch": "*** Begin Patch\n*** Update File: README.md\n@@\n A very small shop.\n+\n+Prices include VAT.\n"
            "*** End Patch\n"
        },
    ),
    Scene("And tidy up.", "file", "file.delete", {"path": "notes.txt"}, answer="n"),
]


@dataclass
class Stage:
    """Draws with colour and boxes in a terminal, plainly in a pipe."""

    console: "Console"
    answers: list[str] = field(default_factory=list)

    @property
    def plain(self) -> bool:
        return not self.console.is_terminal

    def write(self, text: str, style: str = "") -> None:
        self.console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def ask(self, question: Question) -> Verdict:
        answer = self.answers.pop(0)
        view = View(40)
        for line in happening(question, view):
            self.write(f"  {line}", {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim"))
        self.write("\n".join(f"  {line}" for line in display(question, view).split("\n")))
        self.write(f"\n  Approve? (y/n/always): {answer}", "bold")
        if answer == "y":
            return Verdict(True, "person")
        return Verdict(False, "person", reason="the person said no", remedy="Ask what to do instead")

    def play(self, workspace: Workspace, scene: Scene) -> None:
        self.write(f"\n● {scene.says}", "bold")
        self.write(f"→ {scene.tool} {one_line(json.dumps(scene.params, ensure_ascii=False), 150)}", "cyan")
        self.answers = [scene.answer]
        result = workspace.tools(scene.dialect).call(scene.tool, scene.params)
        self.write(human(result, workspace.root), "green" if result.success else "yellow")


@click.command("demo")
@click.option("--svg", metavar="FILE", type=click.File("w", lazy=True), help="Draw the session into a picture instead.")
def command(svg: TextIO | None) -> None:
    """Watch a short scripted agent session on a sample workspace. It needs no key and no network."""
    from rich.console import Console  # noqa: PLC0415  only the demo draws

    if svg is None:
        play(Console())
        return
    console = Console(record=True, width=112, force_terminal=True, file=nowhere())
    play(console)
    drawn = console.export_svg(title="handrail demo")
    svg.write(_FONT.sub("", drawn))  # a picture that fetches nothing


def play(console: "Console") -> None:
    stage = Stage(console)
    with (
        scratch_workspace(SAMPLE) as root,
        Workspace(root, asker=stage.ask, tell=only_log, approve="ask", log_level="off") as workspace,
    ):
        title = "Handrail: one secure kernel, five tool dialects, every surface"
        if stage.plain:
            stage.write(title)
        else:
            console.rule(f"[bold]{title}")
        stage.write(f"A sample workspace in {root}. You play the person; the answers are typed for you.", "dim")
        for scene in SCENES:
            stage.play(workspace, scene)
        stage.write("\nNothing left the workspace, and nothing was changed unasked. Next: handrail --help", "dim")
