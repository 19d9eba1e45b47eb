"""Holds the messages of the `gemini-3` dialect. Answers show absolute paths, as the reference resolves them."""

import posixpath

from handrail.dialects.gemini import PATCH_TYPED, GeminiParams, say_message, schema_reasons
from handrail.model.editor_faults import EmptyPattern, SameText
from handrail.model.faults import (
    AlreadyExists,
    BadLineRange,
    BadParameters,
    BadPath,
    BlockedByFile,
    CommandTimedOut,
    EmptyCommand,
    InvalidPattern,
    IsDirectory,
    MatchCount,
    NoMatch,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PatchTyped,
    TooLarge,
)
from handrail.model.paths import is_absolute, stem_of
from handrail.ops.text.display import size_text
from handrail.tools.common_messages import nearest_or
from handrail.tools.messages import Facts, Message, Words
from handrail.tools.parameter_hints import parameter_hint
from handrail.tools.tool import Dialect
from handrail.tools.warning_messages import notes_with_rights

_READ_AGAIN = "Use read_file to see the current text"


class Gemini3Params(GeminiParams):
    """Accepts unknown parameters and ignores them, as the reference does."""


def absolute(root: str, path: str) -> str:
    """Return a path as the reference resolves it: absolute, without `..` and a final slash."""
    return posixpath.normpath(path if is_absolute(path) else stem_of(root) + path)


def _at(facts: Facts) -> str:
    return absolute(facts["root"], facts["path"])


def _outside(facts: Facts) -> str:
    return (
        f'Path not in workspace: Attempted path "{_at(facts)}" resolves outside the allowed workspace directories: '
        f"{facts['root']}"
    )


def _too_large(facts: Facts) -> str:
    size, limit = size_text(facts["size"], ".2f"), size_text(facts["limit"])
    return f"File size exceeds the {limit} limit: {_at(facts)} ({size})"


def _unusable(facts: Facts) -> str:
    return f"Path cannot be used: {facts['path']}" if facts["path"] else "The 'file_path' parameter must be non-empty."


def _wrong_pattern(facts: Facts) -> str:
    asked = facts["params"]
    excluded = facts["pattern"] == asked.get("exclude_pattern") != asked.get("pattern")
    kind = "exclude regular expression" if excluded else "regular expression"
    return (
        f"Invalid {kind} pattern provided: {facts['pattern']}. Error: {facts['reason']} at position {facts['position']}"
    )


WORDS: Words = {
    **notes_with_rights("a call with additional_permissions asks them"),
    BadParameters: Message("invalid_parameters", schema_reasons, parameter_hint),
    BadPath: Message("invalid_parameters", _unusable, "Use a shorter, plain path"),
    ("write_file", BadPath): Message(
        "invalid_parameters",
        lambda f: _unusable(f) if f["path"] else 'Missing or empty "file_path"',
        "Use a shorter, plain path",
    ),
    OutsideRoot: Message("path_outside_workspace", _outside, "Use a path inside {root}"),
    NotFound: Message("file_not_found", lambda f: f"File not found: {_at(f)}", "Use list_directory or glob to find it"),
    ("list_directory", NotFound): Message(
        "file_not_found",
        lambda f: f"Error listing directory: ENOENT: no such file or directory, stat '{_at(f)}'",
        "List the parent directory to see what is there",
    ),
    ("grep_search", NotFound): Message(
        "file_not_found", lambda f: f"Path does not exist: {_at(f)}", "List the parent directory to see what is there"
    ),
    ("glob", NotFound): Message(
        "file_not_found",
        lambda f: f"Search path does not exist {_at(f)}",
        "List the parent directory to see what is there",
    ),
    ("run_shell_command", NotFound): Message(
        "file_not_found", lambda f: f"Directory not found: {_at(f)}", "Create the directory first"
    ),
    CommandTimedOut: Message("timeout", "{report}", "Run something shorter, or set is_background to true"),
    NotADirectory: Message(
        "not_a_directory", lambda f: f"Error: Path is not a directory: {_at(f)}", "Name a directory"
    ),
    ("glob", NotADirectory): Message(
        "not_a_directory", lambda f: f"Search path is not a directory: {_at(f)}", "Name a directory"
    ),
    BlockedByFile: Message(
        "not_a_directory",
        lambda f: f"'{f['blocker']}' is a file, not a directory: {_at(f)}",
        "Choose another directory, or remove the file first",
    ),
    IsDirectory: Message(
        "is_directory", lambda f: f"Path is a directory, not a file: {_at(f)}", "Name a file inside it"
    ),
    TooLarge: Message("file_too_large", _too_large, "Read a part of it with run_shell_command"),
    BadLineRange: Message(
        "invalid_line_range",
        "start_line cannot be greater than end_line",
        "The file has {total} lines; choose lines from 1 to {total}",
    ),
    NoMatch: Message(
        "no_match",
        "Could not find an exact match for 'old_string' in '{path}'. If previous edits modified the file or you are "
        "modifying lines outside your recent read window, please use ReadFile to inspect the target lines before "
        "retrying with an exact 'old_string'.",
        nearest_or(_READ_AGAIN),
    ),
    MatchCount: Message(
        "match_count",
        "Failed to edit, Expected {expected} occurrence but found {found} for old_string in file: {path}. If you "
        "intended to replace multiple occurrences, set 'allow_multiple' to true.",
        "Set allow_multiple to true, or add surrounding lines to old_string",
    ),
    SameText: Message(
        "invalid_parameters",
        "No changes to apply. The old_string and new_string are identical in file: {path}",
        "Change new_string, or leave the file as it is",
    ),
    AlreadyExists: Message(
        "file_exists",
        lambda f: f"File already exists, cannot create: {_at(f)}",
        "Use a non-empty old_string to edit it",
    ),
    InvalidPattern: Message(
        "invalid_pattern",
        _wrong_pattern,
        "A valid pattern would be: {example}",
    ),
    EmptyPattern: Message(
        "invalid_parameters", "The 'pattern' parameter cannot be empty.", "Give a pattern such as **/*.py"
    ),
    EmptyCommand: Message("invalid_parameters", "Command cannot be empty.", "Give a command to run"),
    PatchTyped: PATCH_TYPED,
}

dialect = Dialect("gemini-3", WORDS, say_message)
