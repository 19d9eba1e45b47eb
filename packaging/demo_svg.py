"""`make picture`: draws what `handrail demo` shows into docs/demo.svg."""

import io
import os
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from handrail.surfaces.cli.demo import WIDTH, play

PICTURE = Path(__file__).parent.parent / "docs" / "demo.svg"
_FONT = re.compile(r"\s*@font-face \{[^}]*\}")


def draw() -> str:
    """Plays the demo and returns it as an SVG that loads nothing from elsewhere."""
    os.environ["LANG"] = "C.UTF-8"  # the commands of the demo speak English for every user
    lines: list[str] = []
    play(lines.append)
    console = Console(record=True, width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    return _FONT.sub("", console.export_svg(title="handrail demo", unique_id="demo"))


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PICTURE).write_text(draw(), encoding="utf-8")
