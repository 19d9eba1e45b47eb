"""Declares the messages of the `claude-code` dialect. The contract page says which strings are the reference's."""

from handrail.model.editor_faults import NotReadYet, PagesUnknown, SameText
from handrail.model.faults import (
    AlreadyExists,
    BadLineRange,
    CommandFailed,
    InvalidPattern,
    IsDirectory,
    NoMatch,
    NotAbsolute,
    NotADirectory,
    NotFound,
    NotUnique,
    OutsideRoot,
    PatchTyped,
    StaleFile,
)
from handrail.model.job_faults import JobEnded, UnknownJob
from handrail.model.paths import is_absolute
from handrail.ops.search.char_class import SPANS_LINES
from handrail.tools.common_messages import from_the_root, nearest_or
from handrail.tools.messages import Message, ToolError, Words
from handrail.tools.tool import Dialect

_PAGES = {
    "not_pdf": ("pages can be named only for a PDF", "Leave out pages; use offset and limit"),
    "form": ("pages must be a page or a range, such as 3 or 1-5", "Name pages as 3 or 1-5"),
    "too_many": ("at most {most} pages can be read at once", "Name fewer pages"),
    "beyond": ("the PDF has {most} pages", "Name pages that exist"),
    "broken": ("the PDF cannot be taken apart", "Leave out pages to see the whole PDF"),
    "no_parser": ("pages need handrail[pdf], which is not installed", "Leave out pages to see the whole PDF"),
}


WORDS: Words = {
    NotAbsolute: Message("invalid_parameters", "The path must be absolute: {path}", from_the_root),
    OutsideRoot: Message(
        "path_outside_workspace", "Path '{path}' is outside the workspace", "Use a path that begins with {root}/"
    ),
    NotFound: Message("file_not_found", "File does not exist.", "Use Glob to find the right path"),
    ("Glob", NotFound): Message("file_not_found", "Directory does not exist: {path}", "Use a directory that exists"),
    ("Glob", NotADirectory): Message("not_a_directory", "Path is not a directory: {path}", "Name a directory"),
    ("Grep", NotFound): Message("file_not_found", "Path does not exist: {path}", "Use Glob to find the right path"),
    ("Grep", InvalidPattern): Message(
        "invalid_pattern",
        "Invalid {kind} pattern '{pattern}': {reason} at position {position}",
        lambda f: (
            "Set multiline to true" if f["reason"] == SPANS_LINES else f"A valid pattern would be: {f['example']}"
        ),
    ),
    IsDirectory: Message(
        "is_directory", "The path is a directory, not a file: {path}", "Use Glob to list the files in it"
    ),
    BadLineRange: Message(
        "invalid_line_range",
        "The file has {total} lines, fewer than the offset {first}.",
        "Use a smaller offset",
    ),
    NotReadYet: Message(
        "not_read_yet",
        "File has not been read yet. Read it first before writing to it.",
        "Call Read with this path, then repeat the call",
    ),
    StaleFile: Message(
        "stale_file",
        "File has been unexpectedly modified. Read it again before attempting to write it.",
        lambda f: f"The change since the last read:\n{f['diff']}" if f["diff"] else "Call Read with this path",
    ),
    SameText: Message(
        "invalid_parameters",
        "No changes to make: old_string and new_string are exactly the same.",
        "Give a new_string that differs",
    ),
    NoMatch: Message(
        "find_not_found",
        "String to replace not found in file.\nString: {find}",
        nearest_or("Call Read to see the current text, and copy it exactly"),
    ),
    NotUnique: Message(
        "find_not_unique",
        "Found {count} matches of the string to replace, but replace_all is false. To replace all occurrences, set "
        "replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the "
        "instance.\nString: {find}",
        "The string is at lines {places}",
    ),
    AlreadyExists: Message(
        "file_exists", "Cannot create new file - file already exists.", "Give the text to replace as old_string"
    ),
    PatchTyped: Message(
        "not_a_program",
        "apply_patch is not a program here; nothing was run",
        "Call Edit to change a file, or Write to make a new one",
    ),
    CommandFailed: Message(
        "command_failed", "Exit code {exit_code}{stdout}{stderr}", "Read the output and correct the command"
    ),
    UnknownJob: Message("unknown_job", "No task found with ID: {job}", "Use the ID that Bash returned"),
    JobEnded: Message("job_ended", "Task {job} is not running", "Read its output file to see how it ended"),
    PagesUnknown: Message(
        "invalid_parameters",
        lambda f: f"Invalid pages: {_PAGES[f['why']][0].format(most=f['most'])}",
        lambda f: _PAGES[f["why"]][1],
    ),
}


def _say_message(error: ToolError) -> str:
    return error.message


dialect = Dialect("claude-code", WORDS, _say_message, absolute_paths=True)


def absolute(path: str) -> str:
    """Return an absolute path. Raises NotAbsolute for a relative one."""
    if not is_absolute(path):
        raise NotAbsolute(path)
    return path
