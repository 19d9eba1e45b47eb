"""Writes what the model reads before its task: how to work, its tools, and the project's own guide."""

from handrail.kernel.fs.reader import Reader
from handrail.model.faults import Fault
from handrail.model.limits import KIB
from handrail.tools.router import ToolRouter
from handrail.tools.system_prompt import system_prompt

GUIDES = ("AGENTS.md", "CLAUDE.md")
"""The names of a project's guide for agents; in each directory the first that exists counts."""
_GUIDE_BYTES = 64 * KIB

_HOW_TO_WORK = """\
You are a coding agent. You work in one project directory with the tools below, until the task is done.

- Look before you change: read the files that matter, and run the tests that show the problem.
- Make the smallest change that does the task, then check it.
- A result can be an error with a suggestion. Follow the suggestion, or choose another way.
- If the user does not approve a call, do not try to reach the same effect in another way.
- When the task is done, answer with a short report and call no tool.\
"""


def instructions(router: ToolRouter, reader: Reader, root: str, directory: str = ".") -> str:
    """Return the instructions for a run. `directory` is the current directory of the user, relative to the root."""
    about = f"The project directory is {root}."
    tools = system_prompt(router.dialect, list(router.tools.values())).rstrip()
    return "\n\n".join([_HOW_TO_WORK, about, *_guides(reader, directory), tools])


def _guides(reader: Reader, directory: str) -> list[str]:
    """Return the project's guides, the nearest first."""
    found = []
    parts = [] if directory == "." else directory.split("/")
    for depth in range(len(parts), -1, -1):
        for name in GUIDES:
            path = "/".join([*parts[:depth], name])
            if (text := _text_of(reader, path)) is not None:
                found.append(f"# {path}\n\n{text.strip()}")
                break
    return found


def _text_of(reader: Reader, path: str) -> str | None:
    """Return the beginning of a guide; None if it cannot be read."""
    try:
        data, size = reader.head(path, _GUIDE_BYTES)
    except Fault:
        return None
    rest = f"\n\n[{size - len(data)} more bytes are in {path}]" if size > len(data) else ""
    return data.decode(errors="replace") + rest
