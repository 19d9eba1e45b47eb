"""Says which cases of the contracts cannot hold in a container image, and why: by rules, never by name."""

import json
import re
import subprocess
from functools import cache

from handrail import Workspace
from handrail.ops.shell.command_programs import parse_command
from support.contract_cases import Case, read_all

SEARCHES = re.compile("grep|glob|search", re.IGNORECASE)
SHELLS = re.compile("bash|shell|exec_command|write_stdin|terminal|TaskStop", re.IGNORECASE)
_OF_BASH = re.compile(r"/dev/tcp/|bash: (?:eval: )?line|command not found")
_WRITES_IN_SYSTEM = re.compile(r"(?:>|touch) /(?:etc|usr)/")
_PRESENT = 'for each; do command -v "$each" >/dev/null && echo "$each"; done; true'


def why_not(case: Case, image: str) -> str:
    """Return why a case cannot hold in an image, as docs/images.md says; empty if it must hold there."""
    asked = "".join(step.params for step in case.steps)
    told = "".join(block.body for step in case.steps for block in step.expected)
    different = {
        "images are refused without a sandbox": case.settings.get("sandbox") == "off",
        "an image has no guarded names": "would run the file" in told,
        "commands may write in the whole image": _WRITES_IN_SYSTEM.search(asked),
        "the user of an image is root, whose prompt ends in #": "<any>$ " in told,
    }
    if reasons := [why for why, applies in different.items() if applies]:
        return reasons[0]
    if missing := sorted(programs_of(case) & _on_host() - _in_image(image)):
        return f"the image has no {', '.join(missing)}"
    if "bash" not in _in_image(image) and _OF_BASH.search(asked + told):
        return "the case needs the syntax or the words of bash"
    return ""


def programs_of(case: Case) -> set[str]:
    """Return the names of the programs that the commands of a case run."""
    return {name for step in case.steps for text in _commands(step.params) for name in parse_command(text).programs}


def _commands(params: str) -> list[str]:
    """Return the texts in parameters that are commands."""
    try:
        found = json.loads(params.replace("$ROOT", "/"))
    except ValueError:
        return []
    if not isinstance(found, dict):
        return []
    given = [found.get("command"), found.get("cmd"), *(found.get("commands") or ())]
    return [text for text in given if isinstance(text, str)]


@cache
def _names() -> list[str]:
    return sorted({"bash", *(name for case in read_all() for name in programs_of(case))})


@cache
def _on_host() -> set[str]:
    command = ["/bin/bash", "-c", _PRESENT, "bash", *_names()]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n"))


@cache
def _in_image(image: str) -> set[str]:
    """Ask the shell of an image, once, for the programs that it can run."""
    with Workspace(image=image, approve="auto") as workspace:
        shell = workspace._services.image.shell  # type: ignore[union-attr]
        ran = workspace.exec([shell, "-c", _PRESENT, "sh", *_names()])
    assert ran.exit_code == 0, ran
    return set(ran.stdout.decode().split("\n"))
