"""Holds the `claude` dialect and the words for its errors: strings of the references, where they have some."""

from handrail.dialects.claude_bash import WORDS as SHELL_WORDS
from handrail.model.editor_faults import (
    BadInsertLine,
    BadViewRange,
    DestinationExists,
    IntoItself,
    MountItself,
    NothingToMove,
    RangeNotAllowed,
    ReadDenied,
    TooManyLines,
)
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    BadParameters,
    IsDirectory,
    LinkLoop,
    NoMatch,
    NotAbsolute,
    NotFound,
    NotUnique,
    OutsideRoot,
    PatchTyped,
    SpecialFile,
    TooLarge,
    WriteFailed,
)
from handrail.model.hints import EscapedBreaks, FencedContent
from handrail.model.media_faults import NotText
from handrail.model.paths import MEMORIES, is_absolute, unquote
from handrail.tools.common_messages import nearest_or, problem_sentence
from handrail.tools.messages import Facts, Message, Words
from handrail.tools.parameter_hints import parameter_hint
from handrail.tools.schema import shown
from handrail.tools.tool import Dialect

EDITOR, MEMORY = "str_replace_based_edit_tool", "memory"
_SHOWN_PLACES = 20


def _problems(tool: str) -> Message:
    def say(facts: Facts) -> str:
        problems = facts["problems"]
        for each in problems:
            if (each.where, each.kind) == ("command", "choice"):
                return f"Unrecognized command {each.got}. The allowed commands for the {tool} tool are: {each.expected}"
        return "; ".join(map(problem_sentence, problems))

    return Message("invalid_parameters", say, parameter_hint)


def _bad_range(facts: Facts) -> str:
    given, total = facts["given"], facts["total"]
    if facts["why"] == "shape":
        return "Invalid `view_range`. It should be a list of two integers."
    if facts["why"] == "first":
        where = f"should be within the range of lines of the file: [1, {total}]"
        return f"Invalid `view_range`: {given}. Its first element `{given[0]}` {where}"
    order = f"should be larger or equal than its first `{given[0]}`"
    return f"Invalid `view_range`: {given}. Its second element `{given[1]}` {order}"


def _many(facts: Facts) -> str:
    lines = ", ".join(map(str, sorted({*facts["lines"]})[:_SHOWN_PLACES]))
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{facts['find']}` in lines [{lines}]. "
        "Please ensure it is unique"
    )


def _many_in_memory(facts: Facts) -> str:
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{facts['find']}` in lines: {facts['places']}. "
        "Please ensure it is unique"
    )


def _outside_memory(facts: Facts) -> str:
    path = facts["path"]
    if is_in_memory(path):
        return f"Path {path} would escape {MEMORIES} directory"
    return f"Path must start with {MEMORIES}, got: {path}"


def is_in_memory(path: str) -> bool:
    """Return whether a path, as the model writes it, names the memory directory or something below it."""
    name = unquote(path)
    return name == MEMORIES or name.startswith(f"{MEMORIES}/")


def _suggested(facts: Facts) -> str:
    path: str = facts["path"]
    begins = path if is_absolute(path) else f"{facts['root']}/{path.removeprefix('~/')}"
    return f"The path {shown(path)} is not an absolute path, it should start with `/`. Maybe you meant {shown(begins)}?"


def _doing(facts: Facts) -> str:
    return "read" if facts["params"].get("command", "view") == "view" else "write to"


_VIEW = "View the file again, and copy the text exactly"
WORDS: Words = {
    (EDITOR, BadParameters): _problems(EDITOR),
    (MEMORY, BadParameters): _problems(MEMORY),
    FencedContent: Message(
        "note",
        "{path} now begins with the line {fence} and ends with a closing fence; if that is not part of the file, "
        "remove these two lines with str_replace",
    ),
    EscapedBreaks: Message(
        "note",
        "{path} is now one line that holds the characters \\n several times; if line breaks are meant, replace this "
        "line with str_replace by a text with real line breaks",
    ),
    NotAbsolute: Message("invalid_parameters", _suggested, "Start the path with {root}/"),
    OutsideRoot: Message(
        "path_outside_workspace", "Path '{path}' is outside the workspace", "Use a path that begins with {root}/"
    ),
    NotFound: Message(
        "file_not_found",
        "The path {path} does not exist. Please provide a valid path.",
        "View the directory to see what is there",
    ),
    (EDITOR, AlreadyExists): Message(
        "file_exists",
        "File already exists at: {path}. Cannot overwrite files using command `create`.",
        "Edit the file with str_replace or insert",
    ),
    (EDITOR, IsDirectory): Message(
        "is_directory",
        "The path {path} is a directory and only the `view` command can be used on directories",
        "Name a file in this directory",
    ),
    RangeNotAllowed: Message(
        "invalid_parameters",
        "The `view_range` parameter is not allowed when `path` points to {what}.",
        "Call view without view_range",
    ),
    BadViewRange: Message("invalid_line_range", _bad_range, "View the file to see its line numbers"),
    BadInsertLine: Message(
        "invalid_line_range",
        "Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {total}]",
        "View the file to see its line numbers",
    ),
    NoMatch: Message(
        "no_match",
        "No replacement was performed, old_str `{find}` did not appear verbatim in {path}.",
        nearest_or(_VIEW),
    ),
    NotUnique: Message("find_not_unique", _many, "Add surrounding lines to old_str"),
    NotText: Message(
        "not_text", "Ran into {what} while trying to read {path}", "Use bash to look into the file or to change it"
    ),
    TooLarge: Message(
        "file_too_large",
        "Ran into a size of {size} bytes, more than the limit of {limit}, while trying to read {path}",
        "Use bash to read a part of the file",
    ),
    AccessDenied: Message(
        "permission_denied",
        lambda f: f"Ran into Permission denied while trying to {_doing(f)} {f['path']}",
        "Check the permissions of the file and its directory",
    ),
    ReadDenied: Message(
        "permission_denied",
        "Ran into Permission denied while trying to read {path}",
        "Check the permissions of the file and its directory",
    ),
    WriteFailed: Message(
        "write_failed",
        "Ran into {why} while trying to write to {path}",
        "Nothing was changed; fix the cause and try again",
    ),
    (MEMORY, OutsideRoot): Message("path_outside_memory", _outside_memory, f"Use a path that begins with {MEMORIES}/"),
    (MEMORY, AlreadyExists): Message("file_exists", "File {path} already exists", "Edit it, or choose another name"),
    (MEMORY, IsDirectory): Message("is_directory", "The path {path} is not a file.", "Name a file in this directory"),
    (MEMORY, SpecialFile): Message("not_a_file", "Unsupported file type for {path}", "Only files can be used"),
    (MEMORY, LinkLoop): Message(
        "link_loop", f"Path {{path}} would escape {MEMORIES} directory", "Use the path of the file itself"
    ),
    (MEMORY, NotUnique): Message("find_not_unique", _many_in_memory, "Add surrounding lines to old_str"),
    (MEMORY, BadInsertLine): Message(
        "invalid_line_range",
        "Invalid `insert_line` parameter: {line}. It should be within the range [0, {total}].",
        "View the file to see its line numbers",
    ),
    TooManyLines: Message(
        "file_too_large", "File {path} exceeds maximum line limit of 999,999 lines.", "Split the file"
    ),
    NothingToMove: Message("file_not_found", "The path {path} does not exist", "View the directory first"),
    DestinationExists: Message("file_exists", "The destination {path} already exists", "Choose another name"),
    MountItself: Message(
        "invalid_parameters", f"Cannot {{command}} the {MEMORIES} directory itself", "Name something in it"
    ),
    PatchTyped: Message(
        "not_a_program",
        "apply_patch is not a program here; nothing was run",
        f"Call {EDITOR}: its command str_replace changes a file, create makes a new one",
    ),
    IntoItself: Message("invalid_parameters", "Cannot rename {path} into itself", "Choose another place"),
}

dialect = Dialect("claude", WORDS | SHELL_WORDS, lambda error: error.message, absolute_paths=True)
