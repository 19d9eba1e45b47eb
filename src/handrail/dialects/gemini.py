"""The `gemini` dialect. Its strings are exact; the path is echoed as the caller gave it."""

import mimetypes
from base64 import b64encode

from handrail.effects import Effect
from handrail.faults import (
    AlreadyExists,
    BadParameters,
    BadPath,
    IsDirectory,
    MatchCount,
    NoMatch,
    NotAbsolute,
    NotADirectory,
    NotFound,
    OutsideRoot,
    Problem,
    TooLarge,
)
from handrail.kernel.call import Call
from handrail.kernel.values import Put
from handrail.limits import MIB
from handrail.ops.listing import collation_key, looks_binary, name_filter
from handrail.ops.replace import find_places, no_match, replace_places
from handrail.params import Params, field
from handrail.paths import is_absolute, quote
from handrail.sentences import nearest_or
from handrail.tool import Dialect, Output, Tool
from handrail.words import Facts, Say, ToolError, Words

_INVALID = "Error: Invalid parameters provided. Reason: "
_READ_AGAIN = "Use read_file to see the current text"


def _reason(problem: Problem) -> str:
    """What is wrong, in the words of the JSON Schema checker of the original tools."""
    where = f"params/{problem.where}" if problem.where else "params"
    return (
        where
        + {
            "missing": f" must have required property '{problem.expected}'",
            "type": f" must be {problem.expected}",
            "minimum": f" must be >= {problem.expected}",
            "maximum": f" must be <= {problem.expected}",
            "length": f" must NOT have fewer than {problem.expected} characters",
            "choice": " must be equal to one of the allowed values",
            "text": " must be string",
            "unknown": " must NOT have additional properties",
        }[problem.kind]
    )


def _reasons(facts: Facts) -> str:
    return _INVALID + ", ".join(map(_reason, facts["problems"]))


WORDS: Words = {
    BadParameters: Say("invalid_parameters", _reasons, "Correct the parameters and call the tool again"),
    BadPath: Say("invalid_parameters", _INVALID + "Path cannot be used: {path}", "Use a shorter, plain path"),
    NotAbsolute: Say(
        "invalid_parameters", _INVALID + "File path must be absolute: {path}", "Start the path with {root}"
    ),
    ("list_directory", NotAbsolute): Say(
        "invalid_parameters", _INVALID + "Path must be absolute: {path}", "Start the path with {root}"
    ),
    OutsideRoot: Say(
        "path_outside_workspace",
        _INVALID + "File path must be within the root directory ({root}): {path}",
        "Use a path inside {root}",
    ),
    ("list_directory", OutsideRoot): Say(
        "path_outside_workspace",
        _INVALID + "Path must be within the root directory ({root}): {path}",
        "Use a path inside {root}",
    ),
    ("list_directory", NotFound): Say(
        "file_not_found",
        "Error listing directory: ENOENT: no such file or directory, stat '{path}'",
        "List the parent directory to see what is there",
    ),
    NotADirectory: Say("not_a_directory", "Error: Path is not a directory: {path}", "Name a directory"),
    NotFound: Say("file_not_found", "File not found: {path}", "Use list_directory or glob to find it"),
    IsDirectory: Say("is_directory", "Path is a directory, not a file: {path}", "Name a file inside it"),
    ("write_file", IsDirectory): Say(
        "is_directory", _INVALID + "Path is a directory, not a file: {path}", "Name a file inside it"
    ),
    TooLarge: Say(
        "file_too_large",
        lambda f: (
            f"Error reading file {f['path']}: File size exceeds the 20MB limit: {f['path']} ({f['size'] / MIB:.2f}MB)"
        ),
        "Read a part of it with run_shell_command",
    ),
    NoMatch: Say(
        "no_match",
        "Failed to edit, 0 occurrences found for old_string in {path}. No edits made. The exact text in old_string was "
        "not found. Ensure you're not escaping content incorrectly and check whitespace, indentation, and context. "
        "Use read_file tool to verify.",
        nearest_or(_READ_AGAIN),
    ),
    MatchCount: Say(
        "match_count",
        "Failed to edit, Expected {expected} occurrence but found {found} for old_string in file: {path}",
        "Set expected_replacements to the number found, or add surrounding lines",
    ),
    ("replace", AlreadyExists): Say(
        "file_exists", "File already exists, cannot create: {path}", "Use a non-empty old_string to edit it"
    ),
}


def _say_message(error: ToolError) -> str:
    return error.message


dialect = Dialect("gemini", WORDS, _say_message)


class GeminiParams(Params):
    unknown_allowed = True


def _absolute(path: str) -> str:
    if not is_absolute(path):
        raise NotAbsolute(path)
    return path


class ListDirectory(GeminiParams):
    path: str = field("The absolute path to the directory to list (must be absolute, not relative).")
    ignore: list[str] | None = field("List of glob patterns to ignore.", default=None)


@dialect.tool("list_directory", Effect.READ)
def list_directory(p: ListDirectory, c: Call) -> str:
    """Lists the names of files and subdirectories directly within a specified directory path."""
    ignored = name_filter(p.ignore or [])
    entries = [e for e in c.files.entries(_absolute(p.path)) if e.kind != "link" and not ignored(e.name)]
    entries.sort(key=lambda entry: (not entry.is_directory, collation_key(entry.name)))
    names = [f"{'[DIR] ' if entry.is_directory else ''}{quote(entry.name)}" for entry in entries]
    return "\n".join([f"Directory listing for {p.path}:", *names])


class ReadFile(GeminiParams):
    absolute_path: str = field("The absolute path to the file to read.")
    offset: int | None = field("The 0-based line number to start reading from.", default=None, ge=0)
    limit: int | None = field("Maximum number of lines to read.", default=None, ge=1)


@dialect.tool("read_file", Effect.READ)
def read_file(p: ReadFile, c: Call) -> Output:
    """Reads and returns the content of a specified file, text, image, audio, video or PDF."""
    path = _absolute(p.absolute_path)
    head, size = c.files.head(path, 8192)
    if size > c.limits.gemini_read_bytes:
        raise TooLarge(path, size, c.limits.gemini_read_bytes)
    media = mimetypes.guess_type(path)[0] or ""
    if media == "application/pdf" or (media.startswith(("image/", "audio/", "video/")) and media != "image/svg+xml"):
        return {"inlineData": {"mimeType": media, "data": b64encode(c.files.read(path).data).decode()}}
    if looks_binary(head):
        return f"Cannot display content of binary file: {quote(c.files.stem(path)[:-1])}"
    page = c.files.page(path, (p.offset or 0) + 1, p.limit)
    text = page.data.decode(errors="replace")
    if not page.more:
        return text
    first = page.first
    return (
        f"[File content truncated: showing lines {first}-{first + page.count - 1} of {page.total_lines} total lines. "
        f"Use offset/limit parameters to view more.]\n{text.removesuffix(chr(10))}"
    )


class WriteFile(GeminiParams):
    file_path: str = field("The absolute path to the file to write to.")
    content: str = field("The content to write to the file.", body=True)


@dialect.tool("write_file", Effect.CREATE | Effect.WRITE)
def write_file(p: WriteFile, c: Call) -> str:
    """Writes content to a specified file in the local filesystem."""
    old = c.files.read_if_there(_absolute(p.file_path))
    c.files.commit(Put(p.file_path, p.content.encode(), old))
    if old is None:
        return f"Successfully created and wrote to new file: {p.file_path}."
    return f"Successfully overwrote file: {p.file_path}."


class Replace(GeminiParams):
    file_path: str = field("The absolute path to the file to modify.")
    old_string: str = field("The exact literal text to replace.")
    new_string: str = field("The exact literal text to replace it with.")
    expected_replacements: int = field("Number of replacements expected.", default=1, ge=1)


@dialect.tool("replace", Effect.READ | Effect.CREATE | Effect.WRITE)
def replace(p: Replace, c: Call) -> str:
    """Replaces text within a file."""
    path = _absolute(p.file_path)
    if not p.old_string:
        c.files.commit(Put(path, p.new_string.encode()))
        return f"Created new file: {path} with provided content."
    file = c.files.read(path)
    text, places = find_places(file.data, p.old_string)
    if not places:
        raise no_match(path, file.data, p.old_string)
    if len(places) != p.expected_replacements:
        raise MatchCount(path, p.expected_replacements, len(places))
    c.files.commit(Put(path, replace_places(text, places, p.new_string), file))
    return f"Successfully modified file: {path} ({len(places)} replacements)."


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
