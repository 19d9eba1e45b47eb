"""Declares the `gemini` dialect. Its strings are exact; answers repeat paths as the caller wrote them."""

from base64 import b64encode
from itertools import groupby
from typing import TYPE_CHECKING

from handrail.model.effects import Effect
from handrail.model.faults import (
    AbsoluteDirectory,
    AlreadyExists,
    BadParameters,
    BadPath,
    BlockedByFile,
    CommandTimedOut,
    EmptyCommand,
    ForbiddenSyntax,
    InvalidPattern,
    IsDirectory,
    MatchCount,
    NoMatch,
    NotAbsolute,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PatchTyped,
    Problem,
    TooLarge,
)
from handrail.model.files import Put
from handrail.model.limits import BINARY_CHECK_BYTES
from handrail.model.paths import is_absolute, quote, quote_all
from handrail.ops.listing import collation_key, looks_binary, name_filter
from handrail.ops.media_types import media_type
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.shell.substitution import substitutes
from handrail.ops.text.display import size_text, without_escapes
from handrail.ops.text.replace import replace_expected
from handrail.runtime.call import Call
from handrail.tools.command_output import output_text
from handrail.tools.common_messages import from_the_root, nearest_or
from handrail.tools.messages import Facts, Message, ToolError, Words
from handrail.tools.parameter_hints import parameter_hint
from handrail.tools.schema import Params, field, shown
from handrail.tools.tool import Dialect, Output

if TYPE_CHECKING:
    from handrail.kernel.process.runner import CommandOutcome

_INVALID = "Error: Invalid parameters provided. Reason: "
_READ_AGAIN = "Use read_file to see the current text"


def _reason(problem: Problem) -> str:
    """Word a problem like the JSON Schema checker of the original tools."""
    where = f"params/{problem.where}" if problem.where else "params"
    return (
        where
        + {
            "missing": f" must have required property '{problem.expected}'",
            "type": f" must be {problem.expected}",
            "minimum": f" must be >= {problem.expected}",
            "maximum": f" must be <= {problem.expected}",
            "length": f" must NOT have fewer than {problem.expected}",
            "choice": " must be equal to one of the allowed values",
            "nul": " must NOT contain a NUL character",
            "text": " must be string",
            "unknown": " must NOT have additional properties",
        }[problem.kind]
    )


def _resolved(facts: Facts) -> str:
    path: str = facts["path"]
    return path if is_absolute(path) else f"{facts['root']}/{path}"


def _rejected(facts: Facts, reason: str) -> str:
    return f"Command rejected: {shown(facts['params'].get('command', ''))}\nReason: {reason}"


def schema_reasons(facts: Facts) -> str:
    """Word all problems of a call like the JSON Schema checker of the original tools."""
    return ", ".join(map(_reason, facts["problems"]))


def _reasons(facts: Facts) -> str:
    return _INVALID + schema_reasons(facts)


def _too_large(facts: Facts) -> str:
    path, size, limit = facts["path"], size_text(facts["size"], ".2f"), size_text(facts["limit"])
    return f"Error reading file {path}: File size exceeds the {limit} limit: {path} ({size})"


PATCH_TYPED = Message(
    "not_a_program",
    "apply_patch is not a program here; nothing was run",
    "Call replace to change a part of a file, or write_file to write a whole one",
)
WORDS: Words = {
    BadParameters: Message("invalid_parameters", _reasons, parameter_hint),
    BadPath: Message("invalid_parameters", _INVALID + "Path cannot be used: {path}", "Use a shorter, plain path"),
    NotAbsolute: Message("invalid_parameters", _INVALID + "File path must be absolute: {path}", from_the_root),
    ("list_directory", NotAbsolute): Message(
        "invalid_parameters", _INVALID + "Path must be absolute: {path}", from_the_root
    ),
    OutsideRoot: Message(
        "path_outside_workspace",
        _INVALID + "File path must be within the root directory ({root}): {path}",
        "Use a path inside {root}",
    ),
    ("list_directory", OutsideRoot): Message(
        "path_outside_workspace",
        _INVALID + "Path must be within the root directory ({root}): {path}",
        "Use a path inside {root}",
    ),
    ("list_directory", NotFound): Message(
        "file_not_found",
        "Error listing directory: ENOENT: no such file or directory, stat '{path}'",
        "List the parent directory to see what is there",
    ),
    NotADirectory: Message("not_a_directory", "Error: Path is not a directory: {path}", "Name a directory"),
    BlockedByFile: Message(
        "not_a_directory",
        _INVALID + "'{blocker}' is a file, not a directory: {path}",
        "Choose another directory, or remove the file first",
    ),
    NotFound: Message("file_not_found", "File not found: {path}", "Use list_directory or glob to find it"),
    IsDirectory: Message("is_directory", "Path is a directory, not a file: {path}", "Name a file inside it"),
    ("write_file", IsDirectory): Message(
        "is_directory", _INVALID + "Path is a directory, not a file: {path}", "Name a file inside it"
    ),
    TooLarge: Message(
        "file_too_large",
        _too_large,
        "Read a part of it with run_shell_command",
    ),
    NoMatch: Message(
        "no_match",
        "Failed to edit, 0 occurrences found for old_string in {path}. No edits made. The exact text in old_string was "
        "not found. Ensure you're not escaping content incorrectly and check whitespace, indentation, and context. "
        "Use read_file tool to verify.",
        nearest_or(_READ_AGAIN),
    ),
    MatchCount: Message(
        "match_count",
        "Failed to edit, Expected {expected} occurrence but found {found} for old_string in file: {path}",
        "Set expected_replacements to {found}, or add surrounding lines to old_string",
    ),
    ("search_file_content", NotFound): Message(
        "file_not_found",
        lambda f: (
            f"{_INVALID}Failed to access path stats for {_resolved(f)}: "
            f"Error: ENOENT: no such file or directory, stat '{_resolved(f)}'"
        ),
        "List the parent directory to see what is there",
    ),
    ("search_file_content", NotADirectory): Message(
        "not_a_directory", _INVALID + "Path is not a directory: {path}", "Name a directory"
    ),
    ("glob", NotFound): Message(
        "file_not_found",
        lambda f: f"{_INVALID}Search path does not exist {_resolved(f)}",
        "List the parent directory to see what is there",
    ),
    ("glob", NotADirectory): Message(
        "not_a_directory", lambda f: f"{_INVALID}Search path is not a directory: {_resolved(f)}", "Name a directory"
    ),
    InvalidPattern: Message(
        "invalid_pattern",
        _INVALID + "Invalid {kind} pattern: {pattern}. {reason} at position {position}",
        "A valid pattern would be: {example}",
    ),
    ("run_shell_command", OutsideRoot): Message(
        "path_outside_workspace",
        lambda f: _rejected(f, "Directory must be within the project root directory."),
        "Name a directory inside the project",
    ),
    ("run_shell_command", NotFound): Message(
        "file_not_found", lambda f: _rejected(f, "Directory must exist."), "Create the directory first"
    ),
    ("run_shell_command", NotADirectory): Message(
        "not_a_directory", lambda f: _rejected(f, "Directory must exist."), "Name a directory"
    ),
    ("run_shell_command", BadParameters): Message(
        "invalid_parameters",
        lambda f: _rejected(f, schema_reasons(f)),
        parameter_hint,
    ),
    AbsoluteDirectory: Message(
        "invalid_parameters",
        lambda f: _rejected(f, "Directory cannot be absolute. Must be relative to the project root directory."),
        "Name the directory relative to the project root",
    ),
    EmptyCommand: Message(
        "invalid_parameters", lambda f: _rejected(f, "Command cannot be empty."), "Give a command to run"
    ),
    PatchTyped: PATCH_TYPED,
    CommandTimedOut: Message("timeout", "{report}", "Run something shorter, or in the background with &"),
    ForbiddenSyntax: Message(
        "forbidden_syntax",
        "Command rejected: {command}\nReason: Command substitution using $() is not allowed for security reasons",
        "Run the inner command first and put its output into the next one",
    ),
    ("replace", AlreadyExists): Message(
        "file_exists", "File already exists, cannot create: {path}", "Use a non-empty old_string to edit it"
    ),
}


def say_message(error: ToolError) -> str:
    """Return what the model sees of an error."""
    return error.message


dialect = Dialect("gemini", WORDS, say_message, absolute_paths=True)


class GeminiParams(Params):
    unknown_allowed = True


def _absolute(path: str) -> str:
    if not is_absolute(path):
        raise NotAbsolute(path)
    return path


class GeminiListDirectory(GeminiParams):
    path: str = field("The absolute path to the directory to list (must be absolute, not relative).", path=True)
    ignore: list[str] | None = field("List of glob patterns to ignore.", default=None)


@dialect.tool("list_directory", Effect.READ, bounded=True)
def list_directory(p: GeminiListDirectory, c: Call) -> str:
    """Lists the names of files and subdirectories directly within a specified directory path."""
    ignored = name_filter(p.ignore or [])
    listing = c.files.listing(_absolute(p.path))
    broken = {each.name for each in listing.others if each.kind == "link"}
    directories, files = (
        quote_all(sorted((name for name in names if name not in broken and not ignored(name)), key=collation_key))
        for names in listing.through_links()
    )
    return f"Directory listing for {p.path}:\n" + "\n".join([*(f"[DIR] {name}" for name in directories), *files])


class GeminiReadFile(GeminiParams):
    absolute_path: str = field("The absolute path to the file to read.", path=True)
    offset: int | None = field("The 0-based line number to start reading from.", default=None, ge=0)
    limit: int | None = field("Maximum number of lines to read.", default=None, ge=1)


@dialect.tool("read_file", Effect.READ)
def read_file(p: GeminiReadFile, c: Call) -> Output:
    """Reads and returns the content of a specified file, text, image, audio, video or PDF."""
    path = _absolute(p.absolute_path)
    head, size = c.files.head(path, BINARY_CHECK_BYTES)
    if size > c.limits.gemini_read_bytes:
        raise TooLarge(path, size, c.limits.gemini_read_bytes)
    if media := media_type(path):
        return {"inlineData": {"mimeType": media, "data": b64encode(c.files.read(path).data).decode()}}
    if looks_binary(head):
        c.files.note_binary(path)
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
    file_path: str = field("The absolute path to the file to write to.", path=True)
    content: str = field("The content to write to the file.", body=True)


@dialect.tool("write_file", Effect.CREATE | Effect.WRITE)
def write_file(p: WriteFile, c: Call) -> str:
    """Writes content to a specified file in the local filesystem."""
    if c.files.overwrite(_absolute(p.file_path), p.content.encode()):
        return f"Successfully overwrote file: {p.file_path}."
    return f"Successfully created and wrote to new file: {p.file_path}."


class Replace(GeminiParams):
    file_path: str = field("The absolute path to the file to modify.", path=True)
    old_string: str = field("The exact literal text to replace.", any_text=True)
    new_string: str = field("The exact literal text to replace it with.", any_text=True)
    expected_replacements: int = field("Number of replacements expected.", default=1, ge=1)


@dialect.tool("replace", Effect.READ | Effect.CREATE | Effect.WRITE)
def replace(p: Replace, c: Call) -> str:
    """Replaces text within a file."""
    path = _absolute(p.file_path)
    if not p.old_string:
        c.files.commit(Put(path, p.new_string.encode()))
        return f"Created new file: {path} with provided content."
    file = c.files.read(path)
    data = replace_expected(path, file.data, p.old_string, p.new_string, p.expected_replacements, c.limits)
    c.files.commit(Put(path, data, file))
    return f"Successfully modified file: {path} ({p.expected_replacements} replacements)."


class RunShellCommand(GeminiParams):
    command: str = field("Exact bash command to execute.")
    description: str | None = field("Brief description of the command for the user.", default=None)
    directory: str | None = field(
        "Directory to run the command in, relative to the project root.", default=None, path=True
    )


@dialect.tool("run_shell_command", Effect.RUN)
def run_shell_command(p: RunShellCommand, c: Call) -> str:
    """Executes a given shell command as `bash -c <command>`."""
    if substitutes(p.command):
        raise ForbiddenSyntax(p.command)
    outcome = c.commands.run(p.command, directory=p.directory or ".", relative_only=True).outcome
    if outcome.timed_out:
        seconds = c.limits.command_seconds
        report = _report(p, outcome, f"Command timed out after {seconds:g} seconds and was ended.")
        raise CommandTimedOut(p.command, seconds, report)
    return _report(p, outcome, "(none)")


def _report(p: RunShellCommand, outcome: "CommandOutcome", error: str) -> str:
    stdout, stderr = output_text("stdout", outcome.stdout), output_text("stderr", outcome.stderr)
    pids = ", ".join(map(str, sorted(outcome.background)))
    return "\n".join(
        [
            f"Command: {p.command}",
            f"Directory: {p.directory or '(root)'}",
            f"Stdout: {without_escapes(stdout) or '(empty)'}",
            f"Stderr: {without_escapes(stderr) or '(empty)'}",
            f"Error: {error}",
            f"Exit Code: {'(none)' if outcome.exit_code is None else outcome.exit_code}",
            f"Signal: {outcome.signal or '(none)'}",
            f"Background PIDs: {pids or '(none)'}",
            f"Process Group PGID: {outcome.pgid or '(none)'}",
        ]
    )


class SearchFileContent(GeminiParams):
    pattern: str = field("The regular expression (regex) pattern to search for within file contents.")
    path: str | None = field("The absolute path to the directory to search within.", default=None, path=True)
    include: str | None = field("A glob pattern to filter which files are searched.", default=None)


@dialect.tool("search_file_content", Effect.READ, bounded=True)
def search_file_content(p: SearchFileContent, c: Call) -> str:
    """Searches for a regular expression pattern within the content of files in a specified directory."""
    scope = Scope(include=(p.include,) if p.include else ())
    request = SearchRequest(p.pattern, case_sensitive=False, limit=c.limits.gemini_matches, scope=scope)
    result = c.finder.search(p.path or ".", request)
    tail = f' for pattern "{p.pattern}" in path "{p.path or "."}"' + (f' (filter: "{p.include}")' if p.include else "")
    if not result.matches:
        return f"No matches found{tail}."
    lines = [f"Found {result.total} matches{tail}:", "---"]
    for path, matches in groupby(result.matches, key=lambda match: match.path):
        lines += [f"File: {quote(path)}", *(f"L{match.line}: {match.content.strip()}" for match in matches), "---"]
    return "\n".join(lines)


class GeminiGlob(GeminiParams):
    pattern: str = field("The glob pattern to match against (e.g., '**/*.py', 'docs/*.md').")
    path: str | None = field("The absolute path to the directory to search within.", default=None, path=True)
    case_sensitive: bool = field("Whether the search should be case-sensitive.", default=False)


@dialect.tool("glob", Effect.READ, bounded=True)
def glob(p: GeminiGlob, c: Call) -> str:
    """Finds files matching specific glob patterns, returning absolute paths sorted by modification time."""
    base, pattern = p.path or ".", p.pattern
    where = f"{c.stem}{c.files.stem(base)}".rstrip("/") or "/"
    if (inside := c.finder.relative_glob(pattern)) is not None:
        c.files.listing(base)  # raises a PathFault if the path is no directory
        base, pattern = ".", inside
    scope = Scope((pattern,), anywhere=False, fold_case=not p.case_sensitive)
    result = c.finder.find(base, FindRequest(scope, sort="time", limit=c.limits.gemini_files))
    stem = c.stem + c.files.stem(base)
    if not result.files:
        return f'No files found matching pattern "{p.pattern}" within {where}.'
    found = f'Found {result.total} file(s) matching "{p.pattern}" within {where}'
    head = f"{found}, sorted by modification time (newest first):"
    return "\n".join([head, *(quote(stem + name) for name in result.files)])
