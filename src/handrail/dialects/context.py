"""The `context` dialect: categories, permissions, guidance, previews; every answer is an object."""

import functools
from collections.abc import Callable
from typing import Any, Literal

from handrail.effects import Effect
from handrail.faults import AlreadyExists, BadLineRange, BadParameters, NotFound, Problem
from handrail.kernel.call import Call
from handrail.kernel.values import File, Put
from handrail.ops.diff import unified
from handrail.ops.lines import edit_lines
from handrail.ops.text import Text
from handrail.params import Params, field
from handrail.paths import quote
from handrail.tool import Dialect, Guide, Output, Tool
from handrail.words import Say, ToolError, Words

SEARCH, READING, WRITING, MANAGEMENT = "Search & Discovery", "File Reading", "File Writing", "File Management"
CATEGORIES = {
    SEARCH: "Find files and text in the workspace. These tools only look: they change nothing and never ask.",
    READING: "Read files. Access is read-only and needs no approval.",
    WRITING: "Create and change files. Every change needs the person's approval, with the diff in front of them.",
    MANAGEMENT: "Destructive operations on whole files. What is deleted is gone; approval is always needed.",
}

WORDS: Words = {
    NotFound: Say("file_not_found", "File not found: '{path}'", "Use glob or list_directory to find the right path"),
    AlreadyExists: Say(
        "file_exists", "File already exists: '{path}'", "Use update_file, replace_in_file or edit_lines to change it"
    ),
    BadLineRange: Say(
        "invalid_line_range",
        lambda f: f"Line range {f['first']}-{f['last']} is invalid for '{f['path']}': valid range is 1-{f['total']}",
        "Use read_file to see the line numbers",
    ),
}


def _with_suggestion(error: ToolError) -> Output:
    return {"error": error.code, "message": error.message, "suggestion": error.suggestion}


dialect = Dialect("context", WORDS, _with_suggestion, categories=CATEGORIES)


class ContextParams(Params):
    terminate: bool = field("End the agent's turn after this call.", default=False)


_Run = Callable[[Any, Call], Output]


def _tool(name: str, effects: Effect, guide: Guide) -> Callable[[_Run], Tool]:
    """A tool of this dialect: it hands `terminate` back to the agent loop."""

    def declare(run: _Run) -> Tool:
        @functools.wraps(run)
        def with_terminate(p: ContextParams, c: Call) -> Output:
            c.metadata["terminate"] = p.terminate
            return run(p, c)

        return dialect.tool(name, effects, guide)(with_terminate)

    return declare


class ListDirectory(ContextParams):
    path: str = field("Directory, relative to the workspace root.", default=".")


@_tool(
    "list_directory",
    Effect.READ,
    Guide(
        SEARCH,
        "terminate=false if a file of the listing is read next; terminate=true if the person asked for the listing.",
        {"path": "src"},
        "A first look at a project, or at what a directory holds.",
    ),
)
def list_directory(p: ListDirectory, c: Call) -> dict[str, Any]:
    """List the entries of a directory with their type and size."""
    entries, most = c.files.entries(p.path), c.limits.context_entries
    listed = [{"name": quote(e.name), "type": e.kind, "size": e.size} for e in entries[:most]]
    return {"entries": listed, "total_entries": len(entries), "truncated": len(entries) > most}


class ReadFile(ContextParams):
    path: str = field("File, relative to the workspace root.")
    start_line: int | None = field("First line, counted from 1.", default=None, ge=1)
    end_line: int | None = field("Last line, inclusive.", default=None, ge=1)


@_tool(
    "read_file",
    Effect.READ,
    Guide(
        READING,
        "terminate=false while the content is needed for further work; terminate=true if the person asked to see it.",
        {"path": "src/main.rs", "start_line": 1, "end_line": 80},
        "Read before you edit; give a line range for long files.",
    ),
)
def read_file(p: ReadFile, c: Call) -> dict[str, Any]:
    """Read a file, or some of its lines."""
    first, last = p.start_line or 1, p.end_line
    page = c.files.page(p.path, first, None if last is None else max(0, last - first + 1))
    if first > max(page.total_lines, 1) or (last is not None and last < first):
        raise BadLineRange(p.path, first, last or page.total_lines, page.total_lines)
    return {"content": page.data.decode(errors="replace"), "total_lines": page.total_lines}


class CreateFile(ContextParams):
    path: str = field("File to create, relative to the workspace root.")
    content: str = field("What it holds.", body=True)


@_tool(
    "create_file",
    Effect.CREATE,
    Guide(
        WRITING,
        "terminate=true once the last file of the task is there; terminate=false if it is to be checked or used.",
        {"path": "src/util.rs", "content": "pub fn id<T>(x: T) -> T { x }\n"},
        "New files only: an existing one is never overwritten. Parent directories are made.",
    ),
)
def create_file(p: CreateFile, c: Call) -> dict[str, Any]:
    """Create a file that does not exist yet."""
    data = p.content.encode()
    c.files.commit(Put(p.path, data))
    return {"bytes_written": len(data), "message": f"Created {p.path}"}


class UpdateFile(ContextParams):
    path: str = field("Existing file, relative to the workspace root.")
    content: str = field("The whole new content.", body=True)


@_tool(
    "update_file",
    Effect.WRITE,
    Guide(
        WRITING,
        "terminate=true after a successful update; terminate=false if verification is needed.",
        {"path": "VERSION", "content": "2.0\n"},
        "Replaces the whole content. For small changes prefer replace_in_file or edit_lines.",
    ),
)
def update_file(p: UpdateFile, c: Call) -> dict[str, Any]:
    """Replace the whole content of an existing file."""
    data = p.content.encode()
    c.files.commit(Put(p.path, data, c.files.read(p.path)))
    return {"bytes_written": len(data), "message": f"Updated {p.path}"}


class AppendFile(ContextParams):
    path: str = field("Existing file, relative to the workspace root.")
    content: str = field("Text to add at the end.", body=True)


@_tool(
    "append_file",
    Effect.WRITE,
    Guide(
        WRITING,
        "terminate=true after the last addition; terminate=false if more follows.",
        {"path": "CHANGELOG.md", "content": "- Fixed the total\n"},
        "Adds at the end; what is there stays as it is.",
    ),
)
def append_file(p: AppendFile, c: Call) -> dict[str, Any]:
    """Add text at the end of an existing file."""
    file = c.files.read(p.path)
    text = Text.of(file.data)
    data = text.replace([(len(text.lf), len(text.lf), p.content)])
    c.files.commit(Put(p.path, data, file))
    return {"bytes_written": len(data) - len(file.data), "message": f"Appended to {p.path}"}


class EditLines(ContextParams):
    path: str = field("File to edit, relative to the workspace root.")
    operation: Literal["insert", "delete", "replace"] = field("What to do with the lines.")
    start_line: int = field("First line; an insert goes after it, and 0 is the top.", ge=0)
    end_line: int | None = field("Last line, inclusive; the first line if left out.", default=None, ge=1)
    content: str | None = field("The new lines, for insert and replace.", default=None, body=True)
    preview_only: bool = field("Return the diff without changing the file.", default=False)


@_tool(
    "edit_lines",
    Effect.READ | Effect.WRITE,
    Guide(
        WRITING,
        "Use preview_only=true first; terminate=true after a successful edit, terminate=false if it is to be verified.",
        {"path": "src/main.rs", "operation": "replace", "start_line": 10, "end_line": 12, "content": "let x = 1;\n"},
        "Precise edits by line number. Read the file first: numbers shift after every insert or delete.",
    ),
)
def edit_lines_tool(p: EditLines, c: Call) -> dict[str, Any]:
    """Insert, delete or replace lines of a file by number."""
    if p.content is None and p.operation != "delete":
        raise BadParameters([Problem("", "missing", "content")])
    file = c.files.read(p.path)
    last = p.start_line if p.operation == "insert" or p.end_line is None else p.end_line
    data, total = edit_lines(p.path, file.data, p.operation, (p.start_line, last), p.content or "")
    did = {"insert": "Inserted into", "delete": "Deleted from", "replace": "Replaced in"}[p.operation]
    return {"total_lines": total, "diff": _apply(c, p, file, data), "message": f"{_mood(p)}{did} {p.path}"}


def _apply(c: Call, p: Any, file: File, data: bytes) -> str:
    """The diff of an edit, which is then made unless it is only a preview."""
    if not p.preview_only:
        c.files.commit(Put(p.path, data, file))
    return unified(p.path, file.data, data)


def _mood(p: Any) -> str:
    return "Preview: " if p.preview_only else ""


class DeleteFile(ContextParams):
    path: str = field("File to delete, relative to the workspace root.")


@_tool(
    "delete_file",
    Effect.DELETE,
    Guide(
        MANAGEMENT,
        "terminate=true when the file is gone and nothing else is to be done.",
        {"path": "old/notes.txt"},
        "Deletes one file, never a directory. A link is deleted, not its target.",
    ),
)
def delete_file(p: DeleteFile, c: Call) -> dict[str, Any]:
    """Delete a file."""
    c.files.commit(c.files.removal(p.path))
    return {"message": f"Deleted {p.path}"}


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
