"""Every error answer: a kind and facts, no sentences. A dialect words them (see `words.py`).

    Fault
    ├── UnknownTool · BadParameters · Cancelled · PatternTooSlow · InvalidPattern
    ├── PathFault              the path as the caller wrote it
    │   ├── BadPath            empty, NUL, too long, not text, a reserved form
    │   ├── OutsideRoot · NotAbsolute · AbsoluteDirectory
    │   ├── NotFound · AlreadyExists · IsDirectory · NotADirectory
    │   ├── SpecialFile        FIFO, socket, device
    │   ├── LinkLoop · DanglingLink · AccessDenied · TooLarge
    │   ├── ProtectedPath      the person keeps it from every tool
    │   ├── Conflict           it kept changing under our hands
    │   ├── StaleFile          somebody else changed it since this session last saw it
    │   └── WriteFailed        the disk said no
    ├── EditFault              also carry the path
    │   ├── NoMatch · NotUnique · MatchCount · BadLineRange
    │   ├── HunkNotFound · HunkNotUnique · HunkApplied
    │   ├── BinaryPatch · SpecialMode · DeletionLeaves
    │   └── TooMuchSearch      a patch made to be slow
    ├── BadPatch · SandboxUnavailable · CommandNotStarted
    ├── EmptyCommand · ForbiddenSyntax · CommandTimedOut · CommandFailed · ProgramNotFound · NoCommandYet
    ├── TerminalFault          UnknownTerminal · TerminalBusy · TooManyTerminals
    ├── FetchFault             carry the URL of the hop that failed
    │   ├── InvalidUrl         syntax, too_long, scheme, userinfo, host, port
    │   ├── ForbiddenAddress   loopback, private, metadata … (see kernel/addresses.py)
    │   ├── FetchFailed        no such host, refused, TLS, broken answer
    │   └── FetchTimeout · TooManyRedirects · BinaryContent
    └── NoEngine · Denied      no ripgrep where nothing else may search; nobody approved

Anything else that is raised is a bug.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Fault(Exception):  # noqa: N818  a fault is an answer, not an error of ours
    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.facts().items())})"

    def facts(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(eq=False)
class UnknownTool(Fault):
    tool: str
    known: list[str]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the parameters. `where` is `""` for the whole object, else `patches/0/find`."""

    where: str
    kind: str
    """missing, unknown, type, minimum, maximum, length, choice, text"""
    expected: str
    got: str = ""


@dataclass(eq=False)
class BadParameters(Fault):
    problems: list[Problem]


@dataclass(eq=False)
class Cancelled(Fault):
    pass


@dataclass(eq=False)
class InvalidPattern(Fault):
    kind: str
    """glob or regex"""
    pattern: str
    reason: str
    position: int
    """The offending character, counted from 0."""
    example: str
    """A valid pattern, as near to the given one as can be told."""


@dataclass(eq=False)
class PatternTooSlow(Fault):
    pattern: str
    seconds: float


@dataclass(eq=False)
class PathFault(Fault):
    path: str


@dataclass(eq=False)
class BadPath(PathFault):
    why: str


@dataclass(eq=False)
class OutsideRoot(PathFault):
    pass


@dataclass(eq=False)
class NotAbsolute(PathFault):
    pass


@dataclass(eq=False)
class NotFound(PathFault):
    pass


@dataclass(eq=False)
class AlreadyExists(PathFault):
    pass


@dataclass(eq=False)
class IsDirectory(PathFault):
    pass


@dataclass(eq=False)
class NotADirectory(PathFault):
    pass


@dataclass(eq=False)
class SpecialFile(PathFault):
    kind: str


@dataclass(eq=False)
class LinkLoop(PathFault):
    pass


@dataclass(eq=False)
class DanglingLink(PathFault):
    pass


@dataclass(eq=False)
class AccessDenied(PathFault):
    pass


@dataclass(eq=False)
class ProtectedPath(PathFault):
    rule: str


@dataclass(eq=False)
class TooLarge(PathFault):
    size: int
    limit: int


@dataclass(eq=False)
class Conflict(PathFault):
    pass


@dataclass(eq=False)
class StaleFile(PathFault):
    change: str  # changed, deleted
    diff: str = ""  # from what was seen to what is there now; empty where that is not known


@dataclass(eq=False)
class WriteFailed(PathFault):
    why: str


@dataclass(eq=False)
class EditFault(Fault):
    path: str


@dataclass(eq=False)
class NoMatch(EditFault):
    find: str
    line: int = 0
    """The nearest place; 0 if nothing is like it."""
    found: str = ""
    difference: str = ""
    """How the line there differs first: see `ops/nearest.py`."""


@dataclass(eq=False)
class NotUnique(EditFault):
    find: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines[:20]))}


@dataclass(eq=False)
class MatchCount(EditFault):
    expected: int
    found: int


@dataclass(eq=False)
class BadLineRange(EditFault):
    first: int
    last: int | None
    total: int


@dataclass(eq=False)
class HunkNotFound(EditFault):
    hunk: int
    part: str
    """context (the line after @@), lines, end (the lines, at the end of the file), line (a number past it)"""
    expected: str
    line: int = 0
    """The nearest place; 0 if nothing is like it."""
    wanted: str = ""
    found: str = ""
    difference: str = ""
    """How `wanted` and `found` differ first: see `ops/nearest.py`; or order, end."""


@dataclass(eq=False)
class HunkNotUnique(EditFault):
    hunk: int
    expected: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines))}


@dataclass(eq=False)
class HunkApplied(EditFault):
    hunk: int
    line: int


@dataclass(eq=False)
class DeletionLeaves(EditFault):
    left: int
    """Lines that would remain."""


@dataclass(eq=False)
class BinaryPatch(EditFault):
    pass


@dataclass(eq=False)
class SpecialMode(EditFault):
    mode: str
    """120000 is a symbolic link, 160000 a submodule."""


@dataclass(eq=False)
class TooMuchSearch(EditFault):
    hunk: int


@dataclass(eq=False)
class BadPatch(Fault):
    why: str
    """not_text, no_patch, no_begin, no_end, no_sections, no_file, no_hunks, no_lines, bad_header, bad_line,
    bad_end, old_lines (in a new file), combined"""
    line: int = 0
    """In the patch, from 1."""
    text: str = ""


@dataclass(eq=False)
class SandboxUnavailable(Fault):
    level: str
    why: list[str]


@dataclass(eq=False)
class CommandNotStarted(Fault):
    program: str
    directory: str
    why: str
    """The name of the error: ENOENT, EACCES, E2BIG, …"""


@dataclass(eq=False)
class TerminalFault(Fault):
    terminal: str


@dataclass(eq=False)
class UnknownTerminal(TerminalFault):
    pass


@dataclass(eq=False)
class TerminalBusy(TerminalFault):
    """A living session already has this id."""


@dataclass(eq=False)
class TooManyTerminals(TerminalFault):
    limit: int


@dataclass(eq=False)
class FetchFault(Fault):
    url: str


@dataclass(eq=False)
class InvalidUrl(FetchFault):
    why: str


@dataclass(eq=False)
class ForbiddenAddress(FetchFault):
    host: str
    address: str
    why: str


@dataclass(eq=False)
class FetchFailed(FetchFault):
    why: str


@dataclass(eq=False)
class FetchTimeout(FetchFault):
    seconds: float


@dataclass(eq=False)
class TooManyRedirects(FetchFault):
    limit: int


@dataclass(eq=False)
class BinaryContent(FetchFault):
    content_type: str
    size: int | None
    """In bytes; None: the server did not say, and it was not read to its end."""


@dataclass(eq=False)
class EmptyCommand(Fault):
    pass


@dataclass(eq=False)
class ForbiddenSyntax(Fault):
    command: str


@dataclass(eq=False)
class AbsoluteDirectory(PathFault):
    pass


@dataclass(eq=False)
class CommandTimedOut(Fault):
    command: str
    seconds: float
    stdout: str
    stderr: str


@dataclass(eq=False)
class CommandFailed(Fault):
    command: str
    exit_code: int
    stdout: str
    stderr: str


@dataclass(eq=False)
class ProgramNotFound(Fault):
    program: str


@dataclass(eq=False)
class NoCommandYet(Fault):
    pass


@dataclass(eq=False)
class NoEngine(Fault):
    pass


@dataclass(eq=False)
class Denied(Fault):
    tool: str
    reason: str
    remedy: str
