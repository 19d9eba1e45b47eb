"""Declares every error that a tool answers with: a kind and facts, no sentences.

A dialect turns a fault into sentences (see `tools/messages.py`).

    Fault
    ├── UnknownTool · BadParameters · Cancelled · PatternTooSlow · InvalidPattern
    ├── Closed                 the session, or its workspace, is closed
    ├── PathFault              holds the path as the caller wrote it
    │   ├── BadPath            empty, NUL, not text, a reserved form; PathTooLong
    │   ├── OutsideRoot · HomePath · NotAbsolute · AbsoluteDirectory
    │   ├── NotFound · DirectoryNotFound · AlreadyExists · IsDirectory · NotADirectory
    │   ├── BlockedByFile      a file is in the way of a path to create
    │   ├── SpecialFile        FIFO, socket, device
    │   ├── LinkLoop · DanglingLink · AccessDenied · TooLarge
    │   ├── ProtectedPath      the user protects it: no tool may reach it
    │   ├── Conflict           another process changed the file during every retry
    │   ├── StaleFile          another process changed the file since this session last read or wrote it
    │   └── WriteFailed        the system could not write
    ├── EditFault              also holds the path
    │   ├── NoMatch · NotUnique · MatchCount · BadLineRange
    │   ├── HunkNotFound · HunkNotUnique · HunkApplied
    │   ├── BinaryPatch · SpecialMode · DeletionLeaves
    │   └── TooMuchSearch      the patch needs more line comparisons than the limit allows
    ├── BadPatch · SandboxUnavailable · CommandNotStarted · UserNotAvailable
    ├── EmptyCommand · PatchTyped · ForbiddenSyntax · CommandTimedOut · CommandFailed · ProgramNotFound · NoCommandYet
    ├── TerminalFault          of a terminal: see `model/terminal_faults.py`
    ├── FetchFault             of a fetch: see `model/fetch_faults.py`
    ├── NoEngine               ripgrep is not available, and the settings forbid the built-in search
    └── Denied                 the call was not approved
        └── ReadOnlyWorkspace

Every other exception that leaves a tool is a bug.
"""

from typing import Any, NamedTuple

from handrail.model.facts import FactRecord


class Fault(FactRecord, Exception):  # noqa: N818  a fault is an answer to the caller, not an error in Handrail
    """The base of all faults. A tool raises a fault to answer with an error."""


class UnknownTool(Fault):
    tool: str
    known: list[str]
    near: str = ""
    """The known tool that was most likely meant; empty if none is near."""


class Problem(NamedTuple):
    """Describes one problem with the parameters of a call."""

    where: str
    """The path of the parameter, such as `patches/0/find`; `""` for the whole object."""
    kind: str
    """One of: missing, unknown, type, minimum, maximum, length, choice, nul, text."""
    expected: str
    got: str = ""


class BadParameters(Fault):
    problems: list[Problem]
    known: dict[str, str] = {}  # noqa: RUF012  never changed
    """The parameters of the tool, each with its description."""


class Cancelled(Fault):
    """The caller cancelled the call."""


class Closed(Fault):
    """The session or its workspace is closed."""


class InvalidPattern(Fault):
    kind: str
    """One of: glob, regex, replacement, text (searched as it is)."""
    pattern: str
    reason: str
    position: int
    """The index of the wrong character, counted from 0."""
    example: str
    """A valid pattern that is close to the given one."""


class PatternTooSlow(Fault):
    pattern: str
    seconds: float


class PathFault(Fault):
    path: str


class BadPath(PathFault):
    why: str
    """One of: empty, not_text, nul, reserved; too_long for a PathTooLong."""


class PathTooLong(BadPath):
    """The path, or a name in it, is longer than file systems allow."""

    why: str = "too_long"


class OutsideRoot(PathFault):
    """The path leads out of the root."""


class HomePath(OutsideRoot):
    """The path to create begins with `~/`, which no tool expands."""


class NotAbsolute(PathFault):
    """The tool takes absolute paths only."""


class NotFound(PathFault):
    """Nothing exists at the path."""


class DirectoryNotFound(NotFound):
    """Nothing exists at the path of a directory."""


class AlreadyExists(PathFault):
    """Something exists at a path where the tool must create a file."""


class IsDirectory(PathFault):
    """The path leads to a directory, but the tool needs a file."""


class NotADirectory(PathFault):
    """The path, or a part of it, must be a directory but is not."""


class BlockedByFile(NotADirectory):
    """The path cannot be created: it leads through a file as if that were a directory."""

    blocker: str
    """The part of the path that is a file, as the caller wrote it."""


class SpecialFile(PathFault):
    """The path leads to something that is neither a file nor a directory."""

    kind: str


class LinkLoop(PathFault):
    """The path follows too many symbolic links."""


class DanglingLink(PathFault):
    """The path is a symbolic link whose target does not exist."""


class AccessDenied(PathFault):
    """The system does not permit access."""


class ProtectedPath(PathFault):
    """The path is protected: no tool may reach it."""

    rule: str
    """The glob that protects the path."""


class TooLarge(PathFault):
    size: int
    limit: int


class Conflict(PathFault):
    """The file changed after it was read for an edit. The router retries the call."""


class StaleFile(PathFault):
    """Another process changed or deleted the file since this session last read or wrote it."""

    change: str
    """One of: changed, deleted."""
    diff: str = ""
    """The difference from the content that the session saw to the content now; empty if that is unknown."""


class WriteFailed(PathFault):
    why: str


class EditFault(Fault):
    path: str


class NoMatch(EditFault):
    find: str
    line: int = 0
    """The line number of the most similar place; 0 if no place is similar."""
    found: str = ""
    difference: str = ""
    """The first difference between `find` and that place: see `ops/text/nearest.py`."""


class NotUnique(EditFault):
    find: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the number of matches and the first 20 line numbers as text."""
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines[:20]))}


class MatchCount(EditFault):
    """The file does not contain the text as often as the caller expects."""

    expected: int
    found: int


class BadLineRange(EditFault):
    first: int
    last: int | None
    total: int
    lowest: int = 1
    """The first line that the call may name; 0 for an insert at the top."""


class HunkNotFound(EditFault):
    hunk: int
    part: str
    """The part that was not found: context (the line after @@), lines, end (the lines, at the end of the file),
    line (the line number is larger than the file) or order (the line number is before the previous hunk)."""
    expected: str
    line: int = 0
    """The line number of the most similar place; 0 if no place is similar."""
    wanted: str = ""
    found: str = ""
    difference: str = ""
    """The first difference between `wanted` and `found`: see `ops/text/nearest.py`; or order, end."""


class HunkNotUnique(EditFault):
    hunk: int
    expected: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        """Return the facts, with the number of places and their line numbers as text."""
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines))}


class HunkApplied(EditFault):
    """The file already contains the result of a hunk."""

    hunk: int
    line: int


class DeletionLeaves(EditFault):
    """A patch deletes a file, but its hunks do not remove every line."""

    left: int
    """The number of lines that would remain."""


class BinaryPatch(EditFault):
    """The patch changes a binary file."""


class SpecialMode(EditFault):
    """The patch gives a file a mode that is not the mode of a regular file."""

    mode: str
    """120000 is a symbolic link, 160000 a submodule."""


class TooMuchSearch(EditFault):
    hunk: int


class BadPatch(Fault):
    why: str
    """One of: not_text, no_patch, no_begin, no_end, no_sections, no_file, no_hunks, no_lines, bad_header, bad_line,
    bad_end, old_lines (in a new file), combined, escaped."""
    line: int = 0
    """The line number in the patch, counted from 1."""
    text: str = ""


class SandboxUnavailable(Fault):
    """The machine cannot provide the sandbox level that the settings require, or cannot cover protected files."""

    level: str
    why: list[str]
    reason: str = "machine"
    """One of: machine; of protected files: unreadable (they may be in such a directory), too_deep, too_many."""


class CommandNotStarted(Fault):
    program: str
    directory: str
    why: str
    """The name of the system error, such as ENOENT, EACCES or E2BIG."""


class UserNotAvailable(Fault):
    """The sandbox has no such user."""

    user: str


class EmptyCommand(Fault):
    """The command is empty."""


class PatchTyped(Fault):
    """The command passes a patch to `apply_patch`, which is a tool and no program."""


class ForbiddenSyntax(Fault):
    command: str


class AbsoluteDirectory(PathFault):
    """The tool takes relative directories only."""


class CommandTimedOut(Fault):
    command: str
    seconds: float
    """The limit that the command reached."""
    report: str
    """The output of the command until then, in the form of the dialect."""


class CommandFailed(Fault):
    command: str
    exit_code: int
    stdout: str
    stderr: str


class ProgramNotFound(Fault):
    program: str


class NoCommandYet(Fault):
    """The caller asks about the last command, but no command has run."""


class NoEngine(Fault):
    """Ripgrep is not available, and the settings forbid the built-in search."""


class Denied(Fault):
    tool: str
    reason: str
    remedy: str
    """The action that the model can take instead."""
    allow: str = ""
    """The way in which the user can allow the call. The model never sees it."""


class ReadOnlyWorkspace(Denied):
    """The workspace is open for reading only."""

    reason: str = "read_only"
    remedy: str = ""
