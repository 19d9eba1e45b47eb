"""The `copilot` dialect: its strings are the catalogue's, to the letter."""

from handrail.effects import Effect
from handrail.faults import (
    AccessDenied,
    AlreadyExists,
    BadLineRange,
    IsDirectory,
    NoMatch,
    NotADirectory,
    NotFound,
    OutsideRoot,
    TooLarge,
)
from handrail.kernel.call import Call
from handrail.kernel.values import MakeDirectory, Put
from handrail.limits import MIB
from handrail.ops.lines import count_lines
from handrail.ops.listing import hex_rows, looks_binary
from handrail.ops.replace import find_places, no_match, replace_places
from handrail.ops.text import split_lines
from handrail.params import Params, field
from handrail.paths import quote
from handrail.sentences import nearest_or
from handrail.tool import Dialect, Tool
from handrail.words import Facts, Say, ToolError, Words


def _requested(facts: Facts) -> str:
    return f"Line range invalid - file has {facts['total']} lines, requested {facts['first']}-{facts['last'] or 'end'}"


WORDS: Words = {
    OutsideRoot: Say(
        "path_outside_working_dir",
        "Path '{path}' is outside working directory",
        "Use a path inside the working directory, relative to it",
    ),
    NotFound: Say(
        "file_not_found", "File '{path}' not found", "Check the file name and try again, or use file_search to find it"
    ),
    IsDirectory: Say("is_a_directory", "Path '{path}' is a directory, not a file", "Use list_dir to see what is in it"),
    NotADirectory: Say("not_a_directory", "Path '{path}' is not a directory", "Name a directory, or use read_file"),
    ("create_file", AlreadyExists): Say(
        "file_exists",
        "File '{path}' already exists. Use replace_string_in_file to modify",
        "Use replace_string_in_file, or choose another name",
    ),
    ("create_directory", AlreadyExists): Say(
        "file_exists",
        "Path '{path}' exists as a file, cannot create directory",
        "Choose another name, or remove the file first",
    ),
    ("create_directory", NotADirectory): Say(
        "file_exists",
        "Path '{path}' exists as a file, cannot create directory",
        "Choose another name, or remove the file first",
    ),
    ("create_file", AccessDenied): Say(
        "permission_denied",
        "Cannot create file '{path}' - permission denied",
        "Choose a directory that you may write to, or ask for the permission",
    ),
    ("list_dir", AccessDenied): Say(
        "permission_denied", "Cannot list directory - permission denied", "Ask for the permission to read it"
    ),
    ("create_directory", AccessDenied): Say(
        "permission_denied",
        "Cannot create directory - permission denied",
        "Choose a directory that you may write to, or ask for the permission",
    ),
    AccessDenied: Say(
        "permission_denied", "Cannot access '{path}' - permission denied", "Ask for the permission, or use another file"
    ),
    ("create_file", TooLarge): Say(
        "invalid_parameters",
        "Content for '{path}' is larger than 10MB",
        "Write a smaller file, or create it with a command",
    ),
    BadLineRange: Say("invalid_line_range", _requested, "Ask for lines that the file has"),
    NoMatch: Say(
        "string_not_found",
        "String '{find}' not found in file",
        nearest_or("Use read_file and copy the text exactly"),
    ),
}


def _with_prefix(error: ToolError) -> str:
    return f"Error: {error.message}"


dialect = Dialect("copilot", WORDS, _with_prefix)


class CreateFile(Params):
    path: str = field("Relative path to the file to create")
    content: str = field("Content to write to the file", body=True)


@dialect.tool("create_file", Effect.CREATE)
def create_file(p: CreateFile, c: Call) -> str:
    """Create a new file with specified content"""
    data = p.content.encode()
    if len(data) > c.limits.copilot_bytes:
        raise TooLarge(p.path, len(data), c.limits.copilot_bytes)
    c.files.commit(Put(p.path, data))
    return f"Created file: {p.path} ({len(data)} bytes)"


class ReadFile(Params):
    path: str = field("Relative path to the file to read")
    start_line: int | None = field("Starting line number (1-indexed, optional)", default=None, ge=1)
    end_line: int | None = field("Ending line number (1-indexed, inclusive, optional)", default=None, ge=1)


@dialect.tool("read_file", Effect.READ)
def read_file(p: ReadFile, c: Call) -> str:
    """Read the contents of a file, optionally specifying line range"""
    head, size = c.files.head(p.path, 8192)
    first, last = p.start_line or 1, p.end_line
    if last is not None and last < first:
        raise BadLineRange(p.path, first, last, c.files.page(p.path, 1, 1).total_lines)
    binary = looks_binary(head)
    page = c.files.page(p.path, first, 0 if binary else None if last is None else last - first + 1)
    if first > max(page.total_lines, 1):
        raise BadLineRange(p.path, first, last, page.total_lines)
    c.metadata.update(total_lines=page.total_lines, lines_returned=page.count, file_size_bytes=size)
    if binary:
        return f"Warning: File appears to be binary, displaying first 1KB as hex\n{hex_rows(head[:1024])}"
    lines = split_lines(page.data.decode(errors="replace"))
    span = f"{first}-{first + page.count - 1}" if page.count else "0-0"
    warning = ""
    if page.cut:
        warning = f"Warning: File is larger than {c.limits.copilot_bytes // MIB}MB, showing only its beginning\n"
    return "\n".join([f"{warning}Contents of {p.path} (lines {span}):", *lines])


class ReplaceString(Params):
    path: str = field("Relative path to the file to modify")
    old_string: str = field("Exact string to find and replace", min_length=1)
    new_string: str = field("String to replace with")


@dialect.tool("replace_string_in_file", Effect.READ | Effect.WRITE)
def replace_string_in_file(p: ReplaceString, c: Call) -> str:
    """Replace a specific string in a file with new content"""
    file = c.files.read(p.path)
    text, places = find_places(file.data, p.old_string)
    if not places:
        raise no_match(p.path, file.data, p.old_string)
    c.files.commit(Put(p.path, replace_places(text, places[:1], p.new_string), file))
    line = text.line_of(places[0][0])
    changed = list(range(line, line + max(1, count_lines(p.new_string.encode()))))
    c.metadata.update(occurrences_found=len(places), occurrences_replaced=1, lines_changed=changed)
    if len(places) > 1:
        return f"Warning: Found {len(places)} occurrences, replaced only the first at line {line}"
    return f"Replaced 1 occurrence in {p.path}"


class ListDir(Params):
    path: str = field("Relative path to directory (default: current directory)", default=".")
    page: int = field("Page of the listing, 1000 entries each (default: 1)", default=1, ge=1)


@dialect.tool("list_dir", Effect.READ)
def list_dir(p: ListDir, c: Call) -> str:
    """List contents of a directory"""
    entries = c.files.entries(p.path)
    files = [quote(entry.name) for entry in entries if not entry.is_directory]
    directories = [f"{quote(entry.name)}/" for entry in entries if entry.is_directory]
    c.metadata.update(total_entries=len(entries), files=len(files), directories=len(directories))
    size, names = c.limits.copilot_entries, files + directories
    shown = names[(p.page - 1) * size : p.page * size]
    if len(names) > size:
        c.metadata.update(page=p.page, pages=-(-len(names) // size))
    if p.page * size < len(names):
        c.warnings.append(f"showing {len(shown)} of {len(names)} entries; page {p.page + 1} goes on")
    stem = c.files.stem(p.path)[:-1]
    title = f"Contents of ./{quote(stem)}:" if stem else "Contents of .:"
    return "".join(f"{line}\n" for line in [title, *(f"  {name}" for name in shown)])


class CreateDirectory(Params):
    path: str = field("Relative path to directory to create")


@dialect.tool("create_directory", Effect.CREATE)
def create_directory(p: CreateDirectory, c: Call) -> str:
    """Create a directory structure (equivalent to mkdir -p)"""
    parents = c.files.missing_parents(p.path)
    c.metadata["created_parents"] = parents
    if parents is None:
        c.metadata["created_parents"] = []
        return f"Directory already exists: {p.path}"
    c.files.commit(MakeDirectory(p.path))
    return f"Created directory: {p.path}"


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
