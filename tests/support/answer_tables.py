"""Writes docs/dialects/answers.md: every answer that is not success, with its suggestion, from the message tables.

To write the page again: `cd tests && ../.venv/bin/python -m support.answer_tables`.
"""

from pathlib import Path
from typing import Any, get_type_hints

from handrail.dialects import NAMES, load
from handrail.model.effects import Effect
from handrail.model.facts import FactRecord
from handrail.model.faults import (
    AbsoluteDirectory,
    BadPatch,
    CommandFailed,
    CommandNotStarted,
    CommandTimedOut,
    EmptyCommand,
    Fault,
    ForbiddenSyntax,
    NoCommandYet,
    PatchTyped,
    ProgramNotFound,
    SandboxUnavailable,
)
from handrail.model.fetch_faults import FetchFault
from handrail.model.terminal_faults import TerminalFault
from handrail.tools.messages import ToolError, render
from handrail.tools.patch_messages import REASONS
from handrail.tools.tool import Dialect
from support.fault_samples import CHOSEN, VALUES, kinds

PAGE = Path(__file__).parent.parent.parent / "docs" / "dialects" / "answers.md"
_HEAD = """# Answers that are not success

Every answer of each dialect that is not success, and the suggestion that goes with it. Words in capitals stand for
facts of the call. Before the suggestion of an answer about a path, the answer names the nearest path that exists:
`Did you mean src/app.py?` Every surface shows the suggestion to the model. `tests/support/answer_tables.py` writes this
page from the message tables.
"""
_NEEDED: dict[type[FactRecord], Effect] = {FetchFault: Effect.FETCH, TerminalFault: Effect.RUN} | dict.fromkeys(
    (
        AbsoluteDirectory,
        CommandFailed,
        CommandNotStarted,
        CommandTimedOut,
        EmptyCommand,
        ForbiddenSyntax,
        NoCommandYet,
        PatchTyped,
        ProgramNotFound,
        SandboxUnavailable,
    ),
    Effect.RUN,
)
"""What a dialect must be able to do before it can give an answer; every dialect can give the others."""


def page() -> str:
    dialects = [load(name) for name in NAMES]  # all of them first: each may declare faults of its own
    return "\n".join([_HEAD, *map(_section, dialects)])


def _section(dialect: Dialect) -> str:
    rows: dict[ToolError, list[str]] = {}
    for fault in (each for kind in kinds(Fault) if _can_answer(dialect, kind) for each in _samples(kind)):
        for tool in dialect.tools:
            said = render(dialect.tables, tool, fault, {"root": "ROOT", "params": {}})
            rows.setdefault(said, []).append(tool)
    lines = [f"## {dialect.name}", "", "| code | tools | answer | suggestion |", "|---|---|---|---|"]
    for said, tools in sorted(rows.items()):
        named = "all" if {*tools} == {*dialect.tools} else ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
        lines.append(f"| `{said.code}` | {named} | {_cell(said.message)} | {_cell(said.suggestion)} |")
    return "\n".join([*lines, ""])


def _samples(kind: type[FactRecord]) -> list[FactRecord]:
    return [BadPatch(why) for why in REASONS] if kind is BadPatch else [_with_names(kind)]


def _can_answer(dialect: Dialect, kind: type[FactRecord]) -> bool:
    needed = next((effect for base, effect in _NEEDED.items() if issubclass(kind, base)), Effect.READ)
    return any(needed in tool.effects for tool in dialect.tools.values()) or needed is Effect.READ


def _with_names(kind: type[FactRecord]) -> FactRecord:
    """Make a fault whose texts are the names of its facts, in capitals."""
    types = get_type_hints(kind)
    facts: dict[str, Any] = {}
    for name in kind.fact_names:
        value = CHOSEN.get((kind, name), VALUES[types[name]])
        facts[name] = name.upper() if value == VALUES[str] else value
    if "difference" in facts:
        facts["difference"] = "case"
    return kind(**facts)


def _cell(text: str) -> str:
    shown = "<br>".join(text.replace("|", "\\|").split("\n"))
    return shown.replace("*", "\\*").replace("_", "\\_")


if __name__ == "__main__":
    PAGE.write_text(page())
