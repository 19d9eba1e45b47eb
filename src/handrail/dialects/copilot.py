"""Declares the `copilot` dialect. Its strings equal those of the catalogue."""

from datetime import UTC, datetime

from handrail.model.effects import Effect
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    BadLineRange,
    BlockedByFile,
    CommandFailed,
    CommandTimedOut,
    InvalidPattern,
    IsDirectory,
    NoCommandYet,
    NoMatch,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PatchTyped,
    ProgramNotFound,
    TooLarge,
)
from handrail.model.files import MakeDirectory, Put
from handrail.model.hints import PageMissing
from handrail.model.limits import BINARY_CHECK_BYTES, KIB
from handrail.model.paths import quote, quote_all
from handrail.model.warnings import MorePages
from handrail.ops.listing import hex_rows, looks_binary
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.shell.syntax_errors import not_found_program
from handrail.ops.text.buffer import split_lines
from handrail.ops.text.display import size_text
from handrail.ops.text.line_edits import count_lines
from handrail.ops.text.replace import replace_first
from handrail.runtime.call import Call
from handrail.tools.command_output import output_text
from handrail.tools.common_messages import nearest_or, valid_lines
from handrail.tools.messages import Facts, Message, ToolError, Words
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect


def _requested(facts: Facts) -> str:
    return f"Line range invalid - file has {facts['total']} lines, requested {facts['first']}-{facts['last'] or 'end'}"


def _failed(facts: Facts) -> str:
    stderr, stdout = facts["stderr"], facts["stdout"]
    end = "\n" if stdout and stderr and not stderr.endswith("\n") else ""
    output = f"{end}Command output:\n{stdout}" if stdout else ""
    return f"Command failed with exit code {facts['exit_code']}:\n{stderr}{output}"


WORDS: Words = {
    OutsideRoot: Message(
        "path_outside_working_dir",
        "Path '{path}' is outside working directory",
        "Use a path inside the working directory, relative to it",
    ),
    NotFound: Message(
        "file_not_found", "File '{path}' not found", "Check the file name and try again, or use file_search to find it"
    ),
    IsDirectory: Message(
        "is_a_directory", "Path '{path}' is a directory, not a file", "Use list_dir to see what is in it"
    ),
    NotADirectory: Message("not_a_directory", "Path '{path}' is not a directory", "Name a directory, or use read_file"),
    ("create_file", AlreadyExists): Message(
        "file_exists",
        "File '{path}' already exists. Use replace_string_in_file to modify",
        "Use replace_string_in_file, or choose another name",
    ),
    ("create_directory", AlreadyExists): Message(
        "file_exists",
        "Path '{path}' exists as a file, cannot create directory",
        "Choose another name, or remove the file first",
    ),
    ("create_directory", NotADirectory): Message(
        "file_exists",
        "Path '{path}' exists as a file, cannot create directory",
        "Choose another name, or remove the file first",
    ),
    ("create_directory", BlockedByFile): Message(
        "file_exists",
        "Cannot create directory '{path}' - '{blocker}' is a file, not a directory",
        "Choose another name, or remove the file first",
    ),
    ("create_file", BlockedByFile): Message(
        "not_a_directory",
        "Cannot create file '{path}' - '{blocker}' is a file, not a directory",
        "Choose another directory, or remove the file first",
    ),
    ("list_dir", NotFound): Message(
        "file_not_found", "Directory '{path}' not found", "Check the name and try again, or list its parent"
    ),
    ("file_search", NotFound): Message(
        "file_not_found", "Directory '{path}' not found", "Check base_path and try again, or use list_dir to find it"
    ),
    ("create_file", AccessDenied): Message(
        "permission_denied",
        "Cannot create file '{path}' - permission denied",
        "Choose a directory that you may write to, or ask for the permission",
    ),
    ("list_dir", AccessDenied): Message(
        "permission_denied", "Cannot list directory - permission denied", "Ask for the permission to read it"
    ),
    ("create_directory", AccessDenied): Message(
        "permission_denied",
        "Cannot create directory - permission denied",
        "Choose a directory that you may write to, or ask for the permission",
    ),
    AccessDenied: Message(
        "permission_denied", "Cannot access '{path}' - permission denied", "Ask for the permission, or use another file"
    ),
    ("create_file", TooLarge): Message(
        "invalid_parameters",
        lambda f: f"Content for '{f['path']}' is larger than {size_text(f['limit'])}",
        "Write a smaller file, or create it with a command",
    ),
    BadLineRange: Message("invalid_line_range", _requested, valid_lines),
    ("file_search", InvalidPattern): Message(
        "invalid_pattern", "Invalid glob pattern '{pattern}'", "{reason} at position {position}; try: {example}"
    ),
    InvalidPattern: Message(
        "invalid_pattern", "Invalid {kind} pattern: {reason}", "At position {position} of '{pattern}'; try: {example}"
    ),
    PatchTyped: Message(
        "not_a_program",
        "apply_patch is not a program here; nothing was run",
        "Call replace_string_in_file to change a file, or create_file to make a new one",
    ),
    ProgramNotFound: Message(
        "command_not_found", "Command '{program}' not found", "Check the spelling, or install the program"
    ),
    CommandFailed: Message(
        "command_failed",
        _failed,
        "Read the output and correct the command",
    ),
    CommandTimedOut: Message(
        "timeout",
        lambda f: f"Command timed out after {f['seconds']:g} seconds",
        "Allow more time with timeout_seconds, or run a shorter command; terminal_last_command shows what it printed",
    ),
    NoCommandYet: Message(
        "no_command_history", "No previous command in this session", "Run a command with run_in_terminal first"
    ),
    NoMatch: Message(
        "string_not_found",
        "String '{find}' not found in file",
        nearest_or("Use read_file and copy the text exactly"),
    ),
}


def _with_prefix(error: ToolError) -> str:
    return f"Error: {error.message}"


dialect = Dialect("copilot", WORDS, _with_prefix)


class CopilotCreateFile(Params):
    path: str = field("Relative path to the file to create", path=True)
    content: str = field("Content to write to the file", body=True)


@dialect.tool("create_file", Effect.CREATE)
def create_file(p: CopilotCreateFile, c: Call) -> str:
    """Create a new file with specified content"""
    data = p.content.encode()
    if len(data) > c.limits.copilot_bytes:
        raise TooLarge(p.path, len(data), c.limits.copilot_bytes)
    c.files.commit(Put(p.path, data))
    return f"Created file: {p.path} ({len(data)} bytes)"


class CopilotReadFile(Params):
    path: str = field("Relative path to the file to read", path=True)
    start_line: int | None = field("Starting line number (1-indexed, optional)", default=None, ge=1)
    end_line: int | None = field("Ending line number (1-indexed, inclusive, optional)", default=None, ge=1)


@dialect.tool("read_file", Effect.READ)
def read_file(p: CopilotReadFile, c: Call) -> str:
    """Read the contents of a file, optionally specifying line range"""
    head, size = c.files.head(p.path, BINARY_CHECK_BYTES)
    first, binary = p.start_line or 1, looks_binary(head)
    page = c.files.lines(p.path, first, p.end_line, room=c.limits.copilot_bytes, content=not binary)
    c.metadata.update(total_lines=page.total_lines, lines_returned=page.count, file_size_bytes=size)
    if binary:
        c.files.note_binary(p.path)
        return f"Warning: File appears to be binary, displaying first 1KB as hex\n{hex_rows(head[:KIB])}"
    lines = split_lines(page.data.decode(errors="replace"))
    span = f"{first}-{first + page.count - 1}" if page.count else "0-0"
    warning = ""
    if page.cut:
        warning = f"Warning: File is larger than {size_text(c.limits.copilot_bytes)}, showing only its beginning\n"
    return "\n".join([f"{warning}Contents of {p.path} (lines {span}):", *lines])


class ReplaceString(Params):
    path: str = field("Relative path to the file to modify", path=True)
    old_string: str = field("Exact string to find and replace", min_length=1, any_text=True)
    new_string: str = field("String to replace with", any_text=True)


@dialect.tool("replace_string_in_file", Effect.READ | Effect.WRITE)
def replace_string_in_file(p: ReplaceString, c: Call) -> str:
    """Replace a specific string in a file with new content"""
    file = c.files.read(p.path)
    data, line, found = replace_first(p.path, file.data, p.old_string, p.new_string, c.limits)
    c.files.commit(Put(p.path, data, file))
    changed = list(range(line, line + max(1, count_lines(p.new_string.encode()))))
    c.metadata.update(occurrences_found=found, occurrences_replaced=1, lines_changed=changed)
    if found > 1:
        return f"Warning: Found {found} occurrences, replaced only the first at line {line}"
    return f"Replaced 1 occurrence in {p.path}"


class ListDir(Params):
    path: str = field("Relative path to directory (default: current directory)", default=".", path=True)
    page: int = field("Page of the listing (default: 1)", default=1, ge=1)


@dialect.tool("list_dir", Effect.READ)
def list_dir(p: ListDir, c: Call) -> str:
    """List contents of a directory"""
    directories, files = c.files.listing(p.path).through_links()
    names = quote_all(files) + [f"{name}/" for name in quote_all(directories)]
    c.metadata.update(total_entries=len(names), files=len(files), directories=len(directories))
    size = max(1, c.limits.copilot_entries)
    shown = names[(p.page - 1) * size : p.page * size]
    if len(names) > size or p.page > 1:
        c.metadata.update(page=p.page, pages=-(-len(names) // size))
    if p.page * size < len(names):
        c.warnings.append(MorePages(len(shown), len(names), p.page + 1))
    elif p.page > 1 and not shown:
        c.warnings.append(PageMissing(p.page, max(1, -(-len(names) // size))))
    stem = c.files.stem(p.path)[:-1]
    title = f"Contents of ./{quote(stem)}:" if stem else "Contents of .:"
    return "".join(f"{line}\n" for line in [title, *(f"  {name}" for name in shown)])


class FileSearch(Params):
    pattern: str = field("Glob pattern (e.g., '**/*.py', 'src/**/*.go')", min_length=1)
    base_path: str = field("Base directory to search from (default: current directory)", default=".", path=True)


@dialect.tool("file_search", Effect.READ)
def file_search(p: FileSearch, c: Call) -> str:
    """Search for files matching a glob pattern"""
    scope = Scope((p.pattern,), anywhere=False, max_depth=c.limits.copilot_depth)
    result = c.finder.find(p.base_path, FindRequest(scope, limit=c.limits.copilot_entries))
    stem = c.files.stem(p.base_path)
    c.metadata.update(matches=result.total, pattern=p.pattern)
    title = f"Found {result.total} files matching '{p.pattern}':"
    if result.truncated:
        title = f"Warning: Found {result.total} matches, showing first {len(result.files)}\n{title}"
    return "\n".join([title, *(f"  {quote(stem + name)}" for name in result.files)])


class GrepSearch(Params):
    pattern: str = field("Text or regex pattern to search for", min_length=1)
    is_regex: bool = field("Whether pattern is regex (default: false)", default=False)
    file_pattern: str | None = field("Glob pattern to limit files searched (default: all files)", default=None)
    max_results: int = field("Maximum number of results to return (default: 100)", default=100, ge=1, le=1000)


@dialect.tool("grep_search", Effect.READ, bounded=True)
def grep_search(p: GrepSearch, c: Call) -> str:
    """Search file contents for text or regex pattern"""
    scope = Scope((p.file_pattern,) if p.file_pattern else ())
    result = c.finder.search(
        ".", SearchRequest(p.pattern, not p.is_regex, limit=p.max_results, scope=scope, count_searched=True)
    )
    c.metadata.update(total_matches=result.total, files_searched=result.files_searched, pattern=p.pattern)
    lines = [f"  {quote(match.path)}:{match.line}: {match.content.strip()}" for match in result.matches]
    title = f"Found {result.total} matches for '{p.pattern}':"
    if not result.complete:
        title = f"Warning: Search timed out after {c.limits.search_seconds:g}s, returning partial results\n{title}"
    return "\n".join([title, *lines])


class RunInTerminal(Params):
    command: str = field("Shell command to execute")
    timeout_seconds: int = field("Timeout in seconds (default: 30)", default=30, ge=1, le=300)


@dialect.tool("run_in_terminal", Effect.RUN)
def run_in_terminal(p: RunInTerminal, c: Call) -> str:
    """Execute a shell command"""
    ran = c.commands.run(p.command, in_users_shell=True, seconds=p.timeout_seconds)
    outcome = ran.outcome
    stdout, stderr = output_text("stdout", outcome.stdout), output_text("stderr", outcome.stderr)
    lines = {"stdout_lines": len(split_lines(stdout)), "stderr_lines": len(split_lines(stderr))}
    c.metadata.update(exit_code=ran.status, **lines)
    if outcome.timed_out:
        raise CommandTimedOut(p.command, p.timeout_seconds, stdout + stderr)
    if outcome.exit_code == 127 and (missing := not_found_program(p.command, stderr)):
        raise ProgramNotFound(missing)
    if outcome.exit_code != 0:
        raise CommandFailed(p.command, ran.returncode, stdout, stderr)
    end = "" if not stdout or stdout.endswith("\n") else "\n"
    return f"Command output:\n{stdout}{end}"


class TerminalLastCommand(Params):
    pass


@dialect.tool("terminal_last_command", Effect.READ)
def terminal_last_command(p: TerminalLastCommand, c: Call) -> str:  # noqa: ARG001  the tool has no parameters
    """Retrieve the last shell command that was executed"""
    last = c.session.last_command
    if last is None:
        raise NoCommandYet
    executed = datetime.fromtimestamp(last.executed_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    c.metadata.update(command=last.command, exit_code=last.exit_code, executed_at=executed)
    output = output_text("stdout", last.stdout) + output_text("stderr", last.stderr)
    return f"Last command: {last.command}\nOutput: {output}"


class CreateDirectory(Params):
    path: str = field("Relative path to directory to create", path=True)


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


class FetchWebpage(Params):
    url: str = field("URL to fetch (must be http or https)", any_text=True)
    timeout_seconds: int = field("Request timeout (default: 10)", default=10, ge=1, le=60)


@dialect.tool("fetch_webpage", Effect.FETCH)
def fetch_webpage(p: FetchWebpage, c: Call) -> str:
    """Fetch content from a web page"""
    page = c.fetch(p.url, p.timeout_seconds)
    c.metadata.update(
        url=page.final_url,
        status_code=page.status_code,
        content_length=page.content_length,
        content_type=page.content_type,
    )
    size = f"{page.content_length / 1024:.1f} KB" if page.content_length >= 1024 else f"{page.content_length} bytes"
    lines = [f"Fetched content from {p.url} ({size})"]
    if page.truncated:
        c.metadata["truncated"] = True
        lines.append(f"Error: Response too large (>{size_text(c.limits.fetch_bytes)}), truncating")
    return "\n".join([*lines, "", page.text])
