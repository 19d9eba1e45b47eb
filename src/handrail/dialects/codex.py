"""Declares the `codex` dialect. Its schemas equal those of the reference; the check of parameters is more lenient."""

from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

from handrail.dialects.output_types import (
    CodexListing,
    CodexSlice,
    MatchGroups,
    PatchedFile,
    PatchResults,
    ShellOutcome,
    TerminalOutput,
)
from handrail.model.effects import Effect
from handrail.model.faults import (
    AccessDenied,
    BadParameters,
    NotADirectory,
    NotFound,
    PatchTyped,
    Problem,
)
from handrail.model.files import Listing
from handrail.model.paths import quote, quote_all, unquote
from handrail.ops.listing import breadth_first
from handrail.ops.patch.grammar import DESCRIPTION, GRAMMAR
from handrail.ops.search.scope import Scope, SearchRequest
from handrail.ops.text.display import without_escapes
from handrail.runtime.call import Call
from handrail.tools.command_output import output_text
from handrail.tools.messages import Message
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect, Freeform, Tool

if TYPE_CHECKING:
    from handrail.kernel.process.runner import CommandOutcome
    from handrail.kernel.process.terminals import Reading
    from handrail.ops.patch import PatchOutcome

dialect = Dialect(
    "codex",
    {
        PatchTyped: Message(
            "not_a_program",
            "apply_patch is not a program here; nothing was run. Call the tool apply_patch_freeform",
            "Call apply_patch_freeform with the text from *** Begin Patch to *** End Patch as its parameter patch",
        )
    },
)
TIMED_OUT = 124
"""The return code of a command that timed out, as the program `timeout` returns it."""


class CodexParams(Params):
    """Makes schemas in the style of the reference: with titles and defaults, and every parameter required."""

    @classmethod
    def schema(cls) -> dict[str, Any]:
        schema = super().schema()
        for name, declared in cls.fields.items():
            each = schema["properties"][name]
            if declared.nullable:
                kind = {word: each.pop(word) for word in ("type", "items") if word in each}
                each |= {"anyOf": [kind, {"type": "null"}], "default": None}
            each["title"] = name.replace("_", " ").title()
        return schema | {"title": cls.__name__, "required": list(cls.fields)}

    @classmethod
    def function_schema(cls) -> dict[str, Any]:
        return cls.schema()


class ListDirInput(CodexParams):
    path: str = field("Root directory to list from.", default=".", path=True)
    depth: int = field("Maximum depth to traverse (BFS).", default=2, ge=0)
    offset: int = field("Number of entries to skip from the start.", default=0, ge=0)
    limit: int = field("Maximum number of entries to return.", default=200, ge=1)


@dialect.tool("list_dir", Effect.READ, bounded=True)
def list_dir(p: ListDirInput, c: Call) -> CodexListing:
    """List directory entries breadth-first up to a depth."""
    top = c.files.listing(p.path)

    def listing(stem: str) -> Listing:
        try:
            return c.files.listing(quote(f"{unquote(p.path)}/{stem}")) if stem else top
        except (NotFound, NotADirectory, AccessDenied):
            return Listing([], [], [])  # deleted since the listing, or not readable

    names = islice(chain.from_iterable(breadth_first(listing, p.depth)), p.offset, None)
    return {"entries": quote_all(list(islice(names, p.limit)))}


class ReadFileInput(CodexParams):
    path: str = field("File path to read.", path=True)
    offset: int = field("Starting line (0-indexed).", default=0, ge=0)
    limit: int = field("Maximum number of lines to return.", default=400, ge=1)
    mode: str = field("Either 'slice' or 'indentation'.", default="slice")
    indent: str = field("Indentation prefix when mode='indentation'.", default="    ", any_text=True)


@dialect.tool("read_file", Effect.READ)
def read_file(p: ReadFileInput, c: Call) -> CodexSlice:
    """Read a slice of a file with optional indentation formatting."""
    if p.mode not in ("slice", "indentation"):
        raise BadParameters([Problem("mode", "choice", "slice, indentation", p.mode)], p.descriptions())
    page = c.files.page(p.path, p.offset + 1, p.limit)
    text = c.files.text(p.path, page.data)
    if p.mode == "indentation" and text:
        text = p.indent + f"\n{p.indent}".join(text.removesuffix("\n").split("\n")) + "\n" * text.endswith("\n")
    return {"text": text, "truncated": page.more}


class GrepFilesInput(CodexParams):
    pattern: str = field("Regex pattern to search for.")
    path: str = field("Root directory to search under.", default=".", path=True)
    include: list[str] | None = field("Optional glob filters to include.", default=None)
    limit: int = field("Maximum matches to return.", default=200, ge=1)


@dialect.tool("grep_files", Effect.READ, bounded=True)
def grep_files(p: GrepFilesInput, c: Call) -> MatchGroups:
    """Recursive regex search with optional include globs."""
    scope = Scope(tuple(filter(None, p.include or ())))
    result = c.finder.search(p.path, SearchRequest(p.pattern, limit=p.limit, scope=scope))
    groups = groupby(result.matches, key=lambda match: match.path)
    return {
        "results": [
            {"file": quote(path), "matches": [{"line_num": each.line, "line": each.content} for each in matches]}
            for path, matches in groups
        ]
    }


_PATCHING = Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE


class ApplyPatchInput(CodexParams):
    patch: str = field("Unified diff text or freeform apply_patch envelope.", body=True)


def _apply_patch(p: ApplyPatchInput, c: Call) -> PatchResults:
    outcomes = c.files.apply_patch(p.patch)
    return {"results": [_patched_file(outcome) for outcome in outcomes if not outcome.moved_to]}


def _patched_file(outcome: "PatchOutcome") -> PatchedFile:
    written = len(outcome.after.data) if outcome.after else 0
    result: PatchedFile = {"path": outcome.path, "bytes_written": written, "created": outcome.created}
    if outcome.deleted:
        result["deleted"] = True
    if outcome.moved_from:
        result["moved_from"] = outcome.moved_from
    return result


@dialect.tool("apply_patch_json", _PATCHING)
def apply_patch_json(p: ApplyPatchInput, c: Call) -> PatchResults:
    """Apply a unified diff."""
    return _apply_patch(p, c)


@dialect.tool("apply_patch_freeform", _PATCHING, freeform=Freeform("patch", DESCRIPTION, GRAMMAR))
def apply_patch_freeform(p: ApplyPatchInput, c: Call) -> PatchResults:
    """Apply a patch using the apply_patch freeform envelope (Begin/End Patch)."""
    return _apply_patch(p, c)


class ShellInput(CodexParams):
    command: str = field("Shell command to run.")
    workdir: str | None = field("Working directory (optional).", default=None, path=True)
    timeout_ms: int = field("Timeout in milliseconds.", default=60000, ge=1)


@dialect.tool("shell", Effect.RUN)
def shell(p: ShellInput, c: Call) -> ShellOutcome:
    """Run a shell command with truncation and timeout protections."""
    ran = c.commands.run(p.command, directory=p.workdir or ".", seconds=p.timeout_ms / 1000)
    outcome = ran.outcome
    return {
        "stdout": output_text("stdout", outcome.stdout),
        "stderr": output_text("stderr", outcome.stderr),
        "returncode": TIMED_OUT if outcome.timed_out else ran.returncode,
        "stdout_truncated": outcome.stdout.cut_bytes > 0,
        "stderr_truncated": outcome.stderr.cut_bytes > 0,
        "timeout": outcome.timed_out,
        "message": _ended(outcome, p.timeout_ms),
    }


def _ended(outcome: "CommandOutcome", timeout_ms: int) -> str | None:
    if outcome.timed_out:
        return f"Command timed out after {timeout_ms} ms; it and everything it started was ended"
    if outcome.cancelled:
        return "Command was cancelled; it and everything it started was ended"
    return f"Command was ended by {outcome.signal}" if outcome.signal else None


class ExecCommandInput(CodexParams):
    session_id: str = field("Opaque PTY session identifier.")
    cmd: str = field("Command to execute in PTY.")
    workdir: str | None = field("Working directory (optional).", default=None, path=True)


@dialect.tool("exec_command", Effect.RUN)
def exec_command(p: ExecCommandInput, c: Call) -> TerminalOutput:
    """Start a PTY-backed long-running command."""
    return _terminal(c, c.commands.start_terminal(p.session_id, p.cmd, directory=p.workdir or "."))


class WriteStdinInput(CodexParams):
    session_id: str = field("Existing PTY session id.")
    chars: str = field("Characters to write to stdin.", any_text=True)


@dialect.tool("write_stdin", Effect.RUN)
def write_stdin(p: WriteStdinInput, c: Call) -> TerminalOutput:
    """Send input to an existing PTY session created by `exec_command`."""
    return _terminal(c, c.commands.type_into(p.session_id, p.chars))


def _terminal(c: Call, reading: "Reading") -> TerminalOutput:
    if not reading.alive:
        c.metadata.update(exit_code=reading.exit_code, signal=reading.signal)
    c.metadata["alive"] = reading.alive
    shown = without_escapes(output_text("output", reading.shown)).replace("\n\r", "\n")
    return {"output": shown, "truncated": reading.dropped_bytes + reading.shown.cut_bytes > 0}


def tool_registrations() -> list[Tool]:
    """Return the tools of the dialect, as the contract of `codex` asks."""
    return list(dialect.tools.values())
