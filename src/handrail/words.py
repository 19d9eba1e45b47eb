"""The sentences for faults that most dialects share. A dialect's own table goes before this one.

A table maps a fault, or a tool's name and a fault, to what is said: a code, a message and a suggestion, as format
strings over the fault's facts. `{path!r}` style conversions are not used: facts arrive ready to be shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handrail.faults import (
    AccessDenied,
    AlreadyExists,
    BadParameters,
    BadPath,
    Cancelled,
    Conflict,
    DanglingLink,
    Denied,
    Fault,
    IsDirectory,
    LinkLoop,
    NoMatch,
    NotADirectory,
    NotFound,
    NotUnique,
    OutsideRoot,
    Problem,
    SpecialFile,
    TooLarge,
    UnknownTool,
    WriteFailed,
)


@dataclass(frozen=True, slots=True)
class Say:
    code: str
    message: str | Callable[[Any], str]
    suggestion: str | Callable[[Any], str] = ""


@dataclass(frozen=True, slots=True)
class ToolError:
    code: str
    message: str
    suggestion: str


Key = type[Fault] | tuple[str, type[Fault]]
Words = dict[Key, Say]

_BAD_PATHS = {
    "empty": "The path is empty",
    "nul": "The path contains a NUL byte",
    "too_long": "The path or one of its names is too long",
    "not_text": "The path is not valid Unicode text",
    "reserved": "The path contains a name that the system reserves",
}
_NAMES = {"integer": "an integer", "array": "an array", "object": "an object"}


def problem_sentence(problem: Problem) -> str:
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
            "text": " must be valid Unicode text (it contains a lone surrogate)",
        }[problem.kind]
    )


def _problems(fault: BadParameters) -> str:
    return "; ".join(map(problem_sentence, fault.problems))


def _nearest(fault: NoMatch) -> str:
    hint = f" The nearest place is {fault.nearest}." if fault.nearest else ""
    return f"Read the file again and copy the text exactly, whitespace included.{hint}"


COMMON: Words = {
    UnknownTool: Say("unknown_tool", "There is no tool '{tool}'", lambda f: f"Use one of: {', '.join(f.known)}"),
    BadParameters: Say("invalid_parameters", _problems, "Correct the parameters and call the tool again"),
    Cancelled: Say("cancelled", "The call was cancelled", "Nothing was changed; call again if it is still wanted"),
    BadPath: Say("invalid_parameters", lambda f: f"{_BAD_PATHS[f.why]}: '{f.path[:200]}'", "Use a shorter, plain path"),
    OutsideRoot: Say(
        "path_outside_workspace",
        "Path '{path}' is outside the workspace",
        "Use a path inside the workspace, relative to its root",
    ),
    NotFound: Say("file_not_found", "'{path}' does not exist", "Check the path, or list the directory first"),
    AlreadyExists: Say("file_exists", "'{path}' already exists", "Choose another name, or edit the existing file"),
    IsDirectory: Say("is_directory", "'{path}' is a directory, not a file", "Name a file inside it"),
    NotADirectory: Say("not_a_directory", "'{path}' is not a directory", "Name a directory"),
    SpecialFile: Say("not_a_file", "'{path}' is a {kind}, not a regular file", "Only regular files can be used"),
    LinkLoop: Say("link_loop", "'{path}' runs in a circle of symbolic links", "Name the file itself"),
    DanglingLink: Say(
        "dangling_link",
        "'{path}' is a symbolic link whose target does not exist",
        "Name the file that is to be created, or delete the link first",
    ),
    AccessDenied: Say(
        "permission_denied",
        "Permission denied: '{path}'",
        "Check the permissions of the file and its directory",
    ),
    TooLarge: Say(
        "file_too_large",
        "'{path}' has {size} bytes, more than the limit of {limit}",
        "Read it in pages, or change it with a command",
    ),
    Conflict: Say(
        "conflict",
        "'{path}' kept changing while it was being edited; nothing was written",
        "Find out what else writes to it, then try again",
    ),
    WriteFailed: Say(
        "write_failed",
        "'{path}' could not be written: {why}",
        "Nothing was changed; remove the cause and try again",
    ),
    NoMatch: Say("find_not_found", "The text was not found in '{path}'", _nearest),
    NotUnique: Say(
        "find_not_unique",
        "The text was found {count} times in '{path}', at lines {places}",
        "Add surrounding lines until it occurs only once",
    ),
    Denied: Say("approval_denied", "{tool} was not approved: {reason}", "{remedy}"),
}


def word(tables: tuple[Words, ...], tool: str, fault: Fault) -> ToolError:
    """What to say about `fault`: the nearest kind wins, and for one kind the tool's own words."""
    for kind in type(fault).__mro__:
        for table in tables:
            say = table.get((tool, kind)) or table.get(kind)
            if say is not None:
                facts = fault.facts()
                return ToolError(say.code, _fill(say.message, fault, facts), _fill(say.suggestion, fault, facts))
    raise LookupError(f"{type(fault).__name__} has no words")


def _fill(text: str | Callable[[Any], str], fault: Fault, facts: dict[str, Any]) -> str:
    return text.format(**facts) if isinstance(text, str) else text(fault)
