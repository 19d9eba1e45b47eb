"""Writes docs/dialects/answers.md: every answer that is not success, with its suggestion, from the message tables.

To write the page again: `cd tests && ../.venv/bin/python -m support.answer_tables`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from handrail.dialects import NAMES, load
from handrail.model.editor_faults import (
    BadInsertLine,
    DestinationExists,
    IntoItself,
    MemoryFull,
    MissingParameter,
    MountItself,
    NothingToMove,
)
from handrail.model.effects import Effect
from handrail.model.facts import FactRecord
from handrail.model.faults import (
    AbsoluteDirectory,
    BadPatch,
    BinaryPatch,
    CommandFailed,
    CommandNotStarted,
    CommandTimedOut,
    DeletionLeaves,
    EmptyCommand,
    Fault,
    ForbiddenSyntax,
    HunkApplied,
    HunkNotFound,
    HunkNotUnique,
    NoCommandYet,
    PatchTyped,
    ProgramNotFound,
    SandboxUnavailable,
    SpecialMode,
    UserNotAvailable,
)
from handrail.model.fetch_faults import FetchFault
from handrail.model.job_faults import JobEnded, NoKeyboard, SandboxDemanded, ShellEnded, TooManyJobs, UnknownJob
from handrail.model.media_faults import NotAnImage
from handrail.model.notebook_faults import BadNotebook, CellNotFound, CellNotUnique
from handrail.model.terminal_faults import TerminalFault
from handrail.tools.messages import ToolError, render
from handrail.tools.patch_messages import REASONS
from handrail.tools.tool import Dialect, Tool
from support.fault_samples import CHOSEN, VALUES, kinds

PAGE = Path(__file__).parent.parent.parent / "docs" / "dialects" / "answers.md"
_HEAD = """# Answers that are not success

Every answer of each dialect that is not success, and the suggestion that goes with it. Words in capitals stand for
facts of the call. Before the suggestion of an answer about a path, the answer names the nearest path that exists:
`Did you mean src/app.py?` Every surface shows the suggestion to the model. `tests/support/answer_tables.py` writes this
page from the message tables; a test compares it with the errors that the contracts show.
"""
_PATCHES = ("codex:apply_patch_json", "codex:apply_patch_freeform", "codex-2026:apply_patch", "openai:apply_patch")
_SHELLS = ("claude:bash", "claude-agent:bash")
_EDITOR = ("claude:str_replace_based_edit_tool", "claude:memory")
_ONLY: dict[tuple[type[FactRecord], ...], tuple[str, ...]] = {
    (AbsoluteDirectory, ForbiddenSyntax): ("gemini:run_shell_command",),
    (UserNotAvailable,): (),
    (NoCommandYet,): ("copilot:terminal_last_command",),
    (ProgramNotFound,): ("copilot:run_in_terminal",),
    (CommandFailed,): ("copilot:run_in_terminal", "claude-code:Bash", *_SHELLS),
    (ShellEnded,): _SHELLS,
    (SandboxDemanded,): ("claude-code:Bash",),
    (UnknownJob, JobEnded): ("codex-2026:write_stdin", "claude-code:TaskStop"),
    (NoKeyboard,): ("codex-2026:write_stdin",),
    (TooManyJobs,): ("codex-2026:exec_command", "claude-code:Bash", "gemini-3:run_shell_command"),
    (TerminalFault,): ("codex:exec_command", "codex:write_stdin"),
    (HunkNotFound, HunkNotUnique, HunkApplied, DeletionLeaves, BinaryPatch, SpecialMode, BadPatch): _PATCHES,
    (BadNotebook, CellNotFound): ("claude-code:NotebookEdit", "claude-code:Read"),
    (CellNotUnique,): ("claude-code:NotebookEdit",),
    (MemoryFull, NothingToMove, DestinationExists, MountItself, IntoItself): ("claude:memory",),
    (BadInsertLine, MissingParameter): _EDITOR,
    (NotAnImage,): ("codex-2026:view_image",),
}
"""The faults that only these tools answer."""
_NEEDED: dict[type[FactRecord], Effect] = {FetchFault: Effect.FETCH} | dict.fromkeys(
    (CommandNotStarted, CommandTimedOut, EmptyCommand, PatchTyped, SandboxUnavailable), Effect.RUN
)
"""What a tool must be able to do before it can give an answer; every tool can give the others."""


def page() -> str:
    dialects = [load(name) for name in NAMES]  # all of them first: each may declare faults of its own
    return "\n".join([_HEAD, *map(_section, dialects)])


def _section(dialect: Dialect) -> str:
    rows: dict[ToolError, list[str]] = {}
    for said, tool in answers(dialect):
        rows.setdefault(said, []).append(tool)
    lines = [f"## {dialect.name}", "", "| code | tools | answer | suggestion |", "|---|---|---|---|"]
    for said, tools in sorted(rows.items()):
        named = "all" if {*tools} == {*dialect.tools} else ", ".join(f"`{tool}`" for tool in dict.fromkeys(tools))
        lines.append(f"| `{said.code}` | {named} | {_cell(said.message)} | {_cell(said.suggestion)} |")
    return "\n".join([*lines, ""])


def answers(dialect: Dialect) -> Iterator[tuple[ToolError, str]]:
    """Yield every answer of a dialect that is not success, with the name of the tool that gives it."""
    for kind in kinds(Fault):
        for tool in (each for each in dialect.tools.values() if _can_answer(dialect.name, each, kind)):
            for fault in _samples(kind):
                yield render(dialect.tables, tool.name, fault, {"root": "ROOT", "params": {}}), tool.name


def _samples(kind: type[FactRecord]) -> list[FactRecord]:
    return [BadPatch(why) for why in REASONS] if kind is BadPatch else [_with_names(kind)]


def _can_answer(dialect: str, tool: Tool, kind: type[FactRecord]) -> bool:
    for kinds_of_fault, tools in _ONLY.items():
        if issubclass(kind, kinds_of_fault):
            return f"{dialect}:{tool.name}" in tools
    needed = next((effect for base, effect in _NEEDED.items() if issubclass(kind, base)), None)
    return needed is None or needed in tool.effects


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
