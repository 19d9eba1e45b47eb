"""Words the faults of editor tools, for dialects that have no words of their own."""

from handrail.model.editor_faults import (
    BadInsertLine,
    BadViewRange,
    DestinationExists,
    EmptyPattern,
    IntoItself,
    MemoryFull,
    MissingParameter,
    MountItself,
    NothingToMove,
    NotReadYet,
    PagesUnknown,
    PatternRefused,
    RangeNotAllowed,
    RangeTooLarge,
    SameText,
    TextTooLarge,
    TooManyEntries,
    TooManyLines,
)
from handrail.tools.messages import Message, Words

EDITING: Words = {
    MissingParameter: Message(
        "invalid_parameters", "Parameter `{name}` is required for command: {command}", "Add the parameter `{name}`"
    ),
    EmptyPattern: Message("invalid_parameters", "The pattern must not be empty", "Give a pattern such as **/*.py"),
    PatternRefused: Message(
        "invalid_parameters", "The pattern must be relative and must not contain '..'", "Name the directory in path"
    ),
    RangeNotAllowed: Message(
        "invalid_parameters", "'{path}' has no lines to choose from", "Call the tool without view_range"
    ),
    RangeTooLarge: Message(
        "file_too_large",
        "Lines {first} to {last} of '{path}' have more than {limit} bytes",
        "Narrow the view_range",
    ),
    TextTooLarge: Message(
        "file_too_large", "'{path}' has {size} bytes, more than the limit of {limit}", "Read a part of it"
    ),
    BadViewRange: Message(
        "invalid_line_range", "Lines {given} are not in '{path}'", "View the file to see its line numbers"
    ),
    BadInsertLine: Message(
        "invalid_line_range",
        "Line {line} is not in '{path}', which has {total} lines",
        "View the file to see its line numbers",
    ),
    NotReadYet: Message("not_read_yet", "'{path}' was not read in this session", "Read the file, then repeat the call"),
    SameText: Message("invalid_parameters", "The text to replace equals its replacement", "Give another text"),
    PagesUnknown: Message("invalid_parameters", "'{path}' has no pages that can be chosen", "Leave out the pages"),
    TooManyLines: Message("file_too_large", "'{path}' has too many lines", "Split the file"),
    TooManyEntries: Message(
        "too_many_entries", "'{path}' holds more than {limit} files and directories", "Do it in smaller parts"
    ),
    MemoryFull: Message(
        "memory_full",
        "The memory directory has room for {limit} {unit}; '{path}' does not fit",
        "Delete memories that are not needed any more",
    ),
    NothingToMove: Message("file_not_found", "'{path}' does not exist", "Check the path, or list the directory first"),
    DestinationExists: Message("file_exists", "'{path}' already exists", "Choose another name"),
    MountItself: Message("invalid_parameters", "Cannot {command} '{path}' itself", "Name something in it"),
    IntoItself: Message("invalid_parameters", "Cannot move '{path}' into itself", "Choose another place"),
}
