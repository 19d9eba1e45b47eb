"""Declares the tools that read, write and delete files."""

from typing import Any, Literal

from handrail.dialects.context.dialect import MANAGEMENT, READING, WRITING, ContextParams, tool
from handrail.dialects.output_types import ContextDone, ContextEdited, ContextRead, ContextReplaced, ContextWritten
from handrail.model.effects import Effect
from handrail.model.faults import BadParameters, Problem
from handrail.model.files import File, Put
from handrail.ops.text.buffer import TextBuffer
from handrail.ops.text.line_edits import edit_lines
from handrail.ops.text.replace import replace_all, replace_regex
from handrail.ops.text.unified_diff import unified
from handrail.runtime.call import Call
from handrail.tools.schema import field
from handrail.tools.tool import Guide


class ContextReadFile(ContextParams):
    path: str = field("File, relative to the workspace root.", path=True)
    start_line: int | None = field("First line, counted from 1.", default=None, ge=1)
    end_line: int | None = field("Last line, inclusive.", default=None, ge=1)


@tool(
    "read_file",
    Effect.READ,
    Guide(
        READING,
        "terminate=false while the content is needed for further work; terminate=true if the user asked to see it.",
        {"path": "src/main.rs", "start_line": 1, "end_line": 80},
        "Read before you edit.",
        "start_line and end_line read a part of a long file; total_lines in the answer says how long it is.",
    ),
)
def read_file(p: ContextReadFile, c: Call) -> ContextRead:
    """Read a file, or some of its lines."""
    page = c.files.lines(p.path, p.start_line or 1, p.end_line)
    return {"content": c.files.text(p.path, page.data), "total_lines": page.total_lines}


class ContextCreateFile(ContextParams):
    path: str = field("File to create, relative to the workspace root.", path=True)
    content: str = field("What it holds.", body=True)


@tool(
    "create_file",
    Effect.CREATE,
    Guide(
        WRITING,
        "terminate=true once the last file of the task is there; terminate=false if it is to be checked or used.",
        {"path": "src/util.rs", "content": "pub fn id<T>(x: T) -> T { x }\n"},
        "New files only: an existing one is never overwritten. Parent directories are made.",
        "content is the whole file; terminate=true ends the turn.",
    ),
)
def create_file(p: ContextCreateFile, c: Call) -> ContextWritten:
    """Create a file that does not exist yet."""
    data = p.content.encode()
    c.files.commit(Put(p.path, data))
    return {"bytes_written": len(data), "message": f"Created {p.path}"}


class UpdateFile(ContextParams):
    path: str = field("Existing file, relative to the workspace root.", path=True)
    content: str = field("The whole new content.", body=True)


@tool(
    "update_file",
    Effect.WRITE,
    Guide(
        WRITING,
        "terminate=true after a successful update; terminate=false if verification is needed.",
        {"path": "VERSION", "content": "2.0\n"},
        "Replaces the whole content. For small changes prefer replace_in_file or edit_lines.",
        "content is the whole new file, not a part of it.",
    ),
)
def update_file(p: UpdateFile, c: Call) -> ContextWritten:
    """Replace the whole content of an existing file."""
    data = p.content.encode()
    c.files.commit(Put(p.path, data, c.files.read(p.path)))
    return {"bytes_written": len(data), "message": f"Updated {p.path}"}


class AppendFile(ContextParams):
    path: str = field("Existing file, relative to the workspace root.", path=True)
    content: str = field("Text to add at the end.", body=True)


@tool(
    "append_file",
    Effect.WRITE,
    Guide(
        WRITING,
        "terminate=true after the last addition; terminate=false if more follows.",
        {"path": "CHANGELOG.md", "content": "- Fixed the total\n"},
        "Adds at the end; what is there stays as it is.",
        "content goes after the last byte; begin it with a line end if the file does not end with one.",
    ),
)
def append_file(p: AppendFile, c: Call) -> ContextWritten:
    """Add text at the end of an existing file."""
    file = c.files.read(p.path)
    text = TextBuffer.of(file.data)
    data = text.replace([(len(text.lf), len(text.lf), p.content)])
    c.files.commit(Put(p.path, data, file))
    return {"bytes_written": len(data) - len(file.data), "message": f"Appended to {p.path}"}


class ReplaceInFile(ContextParams):
    path: str = field("File to edit, relative to the workspace root.", path=True)
    find: str = field("Text, or with is_regex a regular expression, to find.", min_length=1, any_text=True)
    replace: str = field(
        "What to put in its place; groups as $1, ${name} or \\1 where it is a regular expression.", any_text=True
    )
    is_regex: bool = field("Whether find is a regular expression.", default=False)
    preview_only: bool = field("Return the diff without changing the file.", default=False)


@tool(
    "replace_in_file",
    Effect.READ | Effect.WRITE,
    Guide(
        WRITING,
        "Use preview_only=true first; terminate=true after a successful edit, terminate=false if it is to be verified.",
        {"path": "src/app.ts", "find": "oldName", "replace": "newName", "preview_only": True},
        "Replaces every occurrence of a text in one file.",
        "preview_only=true shows the diff and changes nothing; "
        "is_regex=true takes a regular expression, with groups as $1 in replace.",
    ),
)
def replace_in_file(p: ReplaceInFile, c: Call) -> ContextReplaced:
    """Find and replace text in a file, every occurrence."""
    file = c.files.read(p.path)
    if p.is_regex:
        data, count = replace_regex(p.path, file.data, p.find, p.replace, c.limits)
    else:
        data, count = replace_all(p.path, file.data, p.find, p.replace, c.limits)
    word = "replacement" if count == 1 else "replacements"
    return {
        "replacements": count,
        "diff": _apply(c, p, file, data),
        "message": f"{_preview_prefix(p)}{count} {word} in {p.path}",
    }


class EditLines(ContextParams):
    path: str = field("File to edit, relative to the workspace root.", path=True)
    operation: Literal["insert", "delete", "replace"] = field("What to do with the lines.")
    start_line: int = field("First line; an insert goes after it, and 0 is the top.", ge=0)
    end_line: int | None = field("Last line, inclusive; the first line if left out.", default=None, ge=1)
    content: str | None = field("The new lines, for insert and replace.", default=None, body=True)
    preview_only: bool = field("Return the diff without changing the file.", default=False)


@tool(
    "edit_lines",
    Effect.READ | Effect.WRITE,
    Guide(
        WRITING,
        "Use preview_only=true first; terminate=true after a successful edit, terminate=false if it is to be verified.",
        {"path": "src/main.rs", "operation": "replace", "start_line": 10, "end_line": 12, "content": "let x = 1;\n"},
        "Precise edits by line number. Read the file first: numbers shift after every insert or delete.",
        "operation is insert, delete or replace; preview_only=true shows the diff and changes nothing; "
        "an insert goes after start_line, and 0 is the top; end_line is inclusive.",
    ),
)
def edit_lines_tool(p: EditLines, c: Call) -> ContextEdited:
    """Insert, delete or replace lines of a file by number."""
    if p.content is None and p.operation != "delete":
        raise BadParameters([Problem("", "missing", "content")], p.descriptions())
    file = c.files.read(p.path)
    last = p.start_line if p.end_line is None else p.end_line
    data, total = edit_lines(p.path, file.data, p.operation, (p.start_line, last), p.content or "")
    did = {"insert": "Inserted into", "delete": "Deleted from", "replace": "Replaced in"}[p.operation]
    return {"total_lines": total, "diff": _apply(c, p, file, data), "message": f"{_preview_prefix(p)}{did} {p.path}"}


def _apply(c: Call, p: Any, file: File, data: bytes) -> str:
    """Make an edit, unless it is only a preview, and return its diff."""
    if not p.preview_only:
        c.files.commit(Put(p.path, data, file))
    diff = unified(p.path, file.data, data)
    room = c.limits.diff_chars
    return diff if len(diff) <= room else f"{diff[:room]}\n… ({len(diff) - room} characters of the diff not shown)\n"


def _preview_prefix(p: Any) -> str:
    return "Preview: " if p.preview_only else ""


class DeleteFile(ContextParams):
    path: str = field("File to delete, relative to the workspace root.", path=True)


@tool(
    "delete_file",
    Effect.DELETE,
    Guide(
        MANAGEMENT,
        "terminate=true when the file is gone and nothing else is to be done.",
        {"path": "old/notes.txt"},
        "Deletes one file, never a directory. A link is deleted, not its target.",
        "path is the only one; approval is always needed.",
    ),
)
def delete_file(p: DeleteFile, c: Call) -> ContextDone:
    """Delete a file."""
    c.files.commit(c.files.removal(p.path))
    return {"message": f"Deleted {p.path}"}
