"""Declares the errors of editor tools: kinds and facts, no sentences, like those in `model/faults.py`.

MissingParameter           a command of a tool with several commands lacks a parameter
EmptyPattern               a glob without a character that says something
PatternRefused             a glob that is absolute or contains `..`
PathFault
├── ReadDenied             an AccessDenied of a tool that reads a file in order to change it
├── NotReadYet             the session must read the file before it changes it
├── SameText               a text would be replaced by itself
├── PagesUnknown           the call names pages of a file that has none, or that cannot be taken apart
├── RangeNotAllowed        a range of lines of a directory, an image or a PDF
├── RangeTooLarge          the lines of a range have too many bytes
├── TextTooLarge · TooManyLines · TooManyEntries · MemoryFull
└── NothingToMove · DestinationExists · MountItself · IntoItself      of deletes and renames
EditFault
└── BadViewRange · BadInsertLine
"""

from handrail.model.faults import AccessDenied, EditFault, Fault, PathFault


class MissingParameter(Fault):
    name: str
    command: str


class EmptyPattern(Fault):
    """The glob is empty, or has only spaces."""


class PatternRefused(Fault):
    """The glob must be relative and stay below its directory."""

    why: str
    """One of: absolute, above."""


class RangeNotAllowed(PathFault):
    """The path has no lines to choose from."""

    what: str
    """The kind of thing that the path names, with its article."""


class RangeTooLarge(PathFault):
    first: int
    last: int
    limit: int


class TextTooLarge(PathFault):
    """The tool takes only smaller texts; it can read a part of the file."""

    size: int
    limit: int


class TooManyLines(PathFault):
    """The file has more lines than the tool can number."""


class TooManyEntries(PathFault):
    """The directory holds more than one call may delete or move."""

    limit: int


class MemoryFull(PathFault):
    """The file would make the memory directory larger than it may be."""

    limit: int
    unit: str
    """One of: bytes, files."""


class NothingToMove(PathFault):
    """Nothing is at the path that a call deletes or renames."""


class DestinationExists(PathFault):
    """Something is at the path that a file should get."""


class MountItself(PathFault):
    """The call would delete or rename the memory directory itself."""

    command: str


class IntoItself(PathFault):
    """The call would move a directory into itself."""


class BadViewRange(EditFault):
    given: list[int]
    why: str
    """One of: shape (not two numbers), first (not in the file), order (the end is before the start)."""
    total: int = 0


class BadInsertLine(EditFault):
    line: int
    total: int


class ReadDenied(AccessDenied):
    """The system does not permit a tool to read a file that it would change."""


class NotReadYet(PathFault):
    """The tool changes only files that the session has read."""


class SameText(PathFault):
    """The text to find and its replacement are the same."""


class PagesUnknown(PathFault):
    """The call names pages, but the file has none that Handrail can select."""

    why: str
    """One of: not_pdf, form (of the parameter), too_many, beyond (the last page), broken, no_parser."""
    most: int = 0
    """The number of pages that the PDF has, or that one call may choose."""
