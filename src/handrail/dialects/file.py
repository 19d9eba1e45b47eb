"""Declares the `file` dialect: file operations inside the workspace, with objects as answers."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from handrail.dialects.output_types import (
    FileDeleted,
    FileListing,
    FileMatch,
    FileMatches,
    FilePatched,
    FileRead,
    FileWritten,
    ListedFile,
)
from handrail.model.effects import Effect
from handrail.model.faults import (
    AccessDenied,
    BlockedByFile,
    DanglingLink,
    IsDirectory,
    LinkLoop,
    NotADirectory,
    NotFound,
    PathFault,
    PathTooLong,
    SpecialFile,
)
from handrail.model.files import FileEntry, Put
from handrail.model.media_faults import NotText
from handrail.model.paths import quote
from handrail.ops.glob.ignore_rules import NEVER_SEARCHED
from handrail.ops.text.buffer import numbered, split_lines
from handrail.runtime.call import Call
from handrail.tools.media_messages import NOT_SHOWN
from handrail.tools.messages import Message, Words
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

if TYPE_CHECKING:
    from handrail.ops.search.results import Match

_REFUSED: dict[type[PathFault], tuple[str, str]] = {
    NotFound: ("a directory before '..' does not exist", "Write the path without '..'"),
    AccessDenied: ("permission denied", "Choose a directory that you may write to, or ask for the permission"),
    IsDirectory: ("the path names a directory, not a file", "Name a file in this directory"),
    NotADirectory: ("it is a file, but the path ends like a directory", "Remove the slash at the end"),
    BlockedByFile: ("'{blocker}' is a file, not a directory", "Choose another directory, or remove the file first"),
    SpecialFile: ("it is a {kind}, not a regular file", "Choose another name"),
    DanglingLink: (
        "it is a symbolic link whose target does not exist",
        "Delete the link first, or write to its target",
    ),
    LinkLoop: ("it leads into a loop of symbolic links", "Use the path of the file itself"),
    PathTooLong: ("the path or one of its names is too long", "Use shorter names"),
}
"""Answers to writes that the operating system refuses: the reason, and what to do instead."""

WORDS: Words = {
    ("file.write", fault): Message("write_failed", f"Cannot write '{{path}}': {reason}", instead)
    for fault, (reason, instead) in _REFUSED.items()
}
WORDS[NotText] = NOT_SHOWN

dialect = Dialect("file", WORDS)


class Read(Params):
    path: str = field("Path of the file, relative to the workspace root.", path=True)
    offset: int = field("Start line, 1-indexed.", default=1, ge=1)
    limit: int | None = field("Maximum number of lines to return; all when left out.", default=None, ge=1)


@dialect.tool("file.read", Effect.READ)
def read(p: Read, c: Call) -> FileRead:
    """Read file contents with optional pagination for large files."""
    page = c.files.page(p.path, p.offset, p.limit)
    lines = split_lines(c.files.text(p.path, page.data))
    content = "\n".join(numbered(lines, p.offset))
    return {"content": content, "total_lines": page.total_lines, "truncated": page.more}


class Write(Params):
    path: str = field("Path of the file, relative to the workspace root.", path=True)
    content: str = field("Full file contents.", body=True)


@dialect.tool("file.write", Effect.CREATE | Effect.WRITE)
def write(p: Write, c: Call) -> FileWritten:
    """Create or overwrite a file. Creates parent directories if needed."""
    data = p.content.encode()
    c.files.overwrite(p.path, data)
    return {"success": True, "bytes_written": len(data)}


class Edit(Params):
    find: str = field("Exact text to find (must be unique).", min_length=1, any_text=True)
    replace: str = field("Text to replace it with.", any_text=True)


class Patch(Params):
    path: str = field("Path of the file, relative to the workspace root.", path=True)
    patches: list[Edit] = field("Patches to apply in order, all or none.", min_length=1)


@dialect.tool("file.patch", Effect.READ | Effect.WRITE)
def patch(p: Patch, c: Call) -> FilePatched:
    """Apply search-and-replace edits to a file. More efficient than rewriting entire files for small changes."""
    from handrail.ops.text.replace import replace_once  # noqa: PLC0415  only edits need it

    file = c.files.read(p.path)
    data = file.data
    for edit in p.patches:
        data = replace_once(p.path, data, edit.find, edit.replace)
    c.files.commit(Put(p.path, data, file))
    return {"success": True, "patches_applied": len(p.patches)}


class Delete(Params):
    path: str = field("Path of the file, relative to the workspace root.", path=True)


@dialect.tool("file.delete", Effect.DELETE)
def delete(p: Delete, c: Call) -> FileDeleted:
    """Delete a file. Does not delete directories."""
    c.files.commit(c.files.removal(p.path))
    return {"success": True}


class List(Params):
    path: str = field("Directory, relative to the workspace root.", default=".", path=True)
    pattern: str | None = field('Glob pattern, such as "**/*.ts" or "*.py".', default=None)


@dialect.tool("file.list", Effect.READ, bounded=True)
def list_files(p: List, c: Call) -> FileListing:
    """List files in a directory with optional glob pattern filtering."""
    entries, stem = c.files.entries(p.path), c.files.stem(p.path)
    if p.pattern is not None:
        return {"files": [_listed(stem, each) for each in c.finder.entries(p.path, p.pattern)]}
    return {
        "files": [_listed(stem, entry) for entry in entries if entry.kind == "file"],
        "directories": [quote(f"{stem}{entry.name}/") for entry in entries if _is_shown(entry)],
    }


def _is_shown(entry: FileEntry) -> bool:
    return entry.is_directory and entry.name not in NEVER_SEARCHED


def _listed(stem: str, entry: FileEntry) -> ListedFile:
    return {"path": quote(stem + entry.name), "size": entry.size, "modified": _moment(entry.mtime_ns)}


def _moment(mtime_ns: int) -> str:
    try:
        moment = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (OverflowError, ValueError):  # the date of a file can lie outside the range of datetime
        moment = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) if mtime_ns > 0 else datetime(1, 1, 1, tzinfo=UTC)
    return moment.isoformat().replace("+00:00", "Z")


class Search(Params):
    pattern: str = field("Regex pattern.")
    path: str = field("Directory to search, relative to the workspace root.", default=".", path=True)
    glob: str | None = field('Filter by filename pattern, such as "*.py".', default=None)
    case_sensitive: bool = field("Whether case matters.", default=True)
    context_lines: int = field("Lines before and after each match.", default=0, ge=0, le=20)
    max_results: int = field("Limit of results.", default=100, ge=1, le=10_000)


@dialect.tool("file.search", Effect.READ, bounded=True)
def search(p: Search, c: Call) -> FileMatches:
    """Search for content within files using regex patterns. Uses ripgrep internally for performance."""
    from handrail.ops.search.scope import Scope, SearchRequest  # noqa: PLC0415  only searches need it

    scope = Scope((p.glob,) if p.glob else ())
    request = SearchRequest(p.pattern, False, p.case_sensitive, p.context_lines, p.max_results, scope, exact=False)
    result, stem = c.finder.search(p.path, request), c.files.stem(p.path)
    matches: list[FileMatch] = [
        {"path": quote(stem + m.path), "line": m.line, "content": _shown(m, p.context_lines)} for m in result.matches
    ]
    return {"matches": matches, "truncated": result.truncated}


def _shown(match: "Match", context: int) -> str:
    if not context:
        return match.content
    lines = [
        *(f"    {line}" for line in match.before),
        f"--> {match.content}",
        *(f"    {line}" for line in match.after),
    ]
    return "\n".join(lines)
