"""Every error answer: a kind and facts, no sentences. A dialect words them (see `tools/messages.py`).

    Fault
    ├── UnknownTool · BadParameters · Cancelled · PatternTooSlow · InvalidPattern
    ├── Closed                 the session, or its workspace, is closed
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
    │   ├── ForbiddenAddress   loopback, private, metadata … (see kernel/web/addresses.py)
    │   ├── FetchFailed        no such host, refused, TLS, broken answer
    │   └── FetchTimeout · TooManyRedirects · BinaryContent
    └── NoEngine · Denied      no ripgrep where nothing else may search; nobody approved
        └── ReadOnlyWorkspace

Anything else that is raised is a bug.
"""

from typing import Any, ClassVar, NamedTuple, dataclass_transform


@dataclass_transform()
class Fault(Exception):  # noqa: N818  a fault is an answer, not an error of ours
    """Declared like a dataclass, but by hand: sixty of those cost more to import than the rest together."""

    fact_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.fact_names = tuple(dict.fromkeys((*cls.fact_names, *cls.__annotations__)))

    def __init__(self, *given: Any, **named: Any) -> None:
        facts = dict(zip(self.fact_names, given, strict=False)) | named
        missing = [name for name in self.fact_names if name not in facts and not hasattr(type(self), name)]
        if missing or len(given) > len(self.fact_names) or facts.keys() - set(self.fact_names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.fact_names)}")
        super().__init__(*given)
        self.__dict__.update({name: getattr(type(self), name) for name in self.fact_names if name not in facts} | facts)

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.facts().items())})"

    def facts(self) -> dict[str, Any]:
        return dict(vars(self))


class UnknownTool(Fault):
    tool: str
    known: list[str]


class Problem(NamedTuple):
    """One thing that is wrong with the parameters. `where` is `""` for the whole object, else `patches/0/find`."""

    where: str
    kind: str
    """missing, unknown, type, minimum, maximum, length, choice, nul, text"""
    expected: str
    got: str = ""


class BadParameters(Fault):
    problems: list[Problem]


class Cancelled(Fault):
    pass


class Closed(Fault):
    pass


class InvalidPattern(Fault):
    kind: str
    """glob or regex"""
    pattern: str
    reason: str
    position: int
    """The offending character, counted from 0."""
    example: str
    """A valid pattern, as near to the given one as can be told."""


class PatternTooSlow(Fault):
    pattern: str
    seconds: float


class PathFault(Fault):
    path: str


class BadPath(PathFault):
    why: str


class OutsideRoot(PathFault):
    pass


class NotAbsolute(PathFault):
    pass


class NotFound(PathFault):
    pass


class AlreadyExists(PathFault):
    pass


class IsDirectory(PathFault):
    pass


class NotADirectory(PathFault):
    pass


class SpecialFile(PathFault):
    kind: str


class LinkLoop(PathFault):
    pass


class DanglingLink(PathFault):
    pass


class AccessDenied(PathFault):
    pass


class ProtectedPath(PathFault):
    rule: str


class TooLarge(PathFault):
    size: int
    limit: int


class Conflict(PathFault):
    pass


class StaleFile(PathFault):
    change: str  # changed, deleted
    diff: str = ""  # from what was seen to what is there now; empty where that is not known


class WriteFailed(PathFault):
    why: str


class EditFault(Fault):
    path: str


class NoMatch(EditFault):
    find: str
    line: int = 0
    """The nearest place; 0 if nothing is like it."""
    found: str = ""
    difference: str = ""
    """How the line there differs first: see `ops/text/nearest.py`."""


class NotUnique(EditFault):
    find: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines[:20]))}


class MatchCount(EditFault):
    expected: int
    found: int


class BadLineRange(EditFault):
    first: int
    last: int | None
    total: int


class HunkNotFound(EditFault):
    hunk: int
    part: str
    """context (the line after @@), lines, end (the lines, at the end of the file), line (a number past it),
    order (a number before the hunk above)"""
    expected: str
    line: int = 0
    """The nearest place; 0 if nothing is like it."""
    wanted: str = ""
    found: str = ""
    difference: str = ""
    """How `wanted` and `found` differ first: see `ops/text/nearest.py`; or order, end."""


class HunkNotUnique(EditFault):
    hunk: int
    expected: str
    lines: list[int]

    def facts(self) -> dict[str, Any]:
        return {**vars(self), "count": len(self.lines), "places": ", ".join(map(str, self.lines))}


class HunkApplied(EditFault):
    hunk: int
    line: int


class DeletionLeaves(EditFault):
    left: int
    """Lines that would remain."""


class BinaryPatch(EditFault):
    pass


class SpecialMode(EditFault):
    mode: str
    """120000 is a symbolic link, 160000 a submodule."""


class TooMuchSearch(EditFault):
    hunk: int


class BadPatch(Fault):
    why: str
    """not_text, no_patch, no_begin, no_end, no_sections, no_file, no_hunks, no_lines, bad_header, bad_line,
    bad_end, old_lines (in a new file), combined"""
    line: int = 0
    """In the patch, from 1."""
    text: str = ""


class SandboxUnavailable(Fault):
    level: str
    why: list[str]


class CommandNotStarted(Fault):
    program: str
    directory: str
    why: str
    """The name of the error: ENOENT, EACCES, E2BIG, …"""


class TerminalFault(Fault):
    terminal: str


class UnknownTerminal(TerminalFault):
    pass


class TerminalBusy(TerminalFault):
    """A living session already has this id."""


class TooManyTerminals(TerminalFault):
    limit: int


class FetchFault(Fault):
    url: str


class InvalidUrl(FetchFault):
    why: str


class ForbiddenAddress(FetchFault):
    host: str
    address: str
    why: str


class FetchFailed(FetchFault):
    why: str


class FetchTimeout(FetchFault):
    seconds: float


class TooManyRedirects(FetchFault):
    limit: int


class BinaryContent(FetchFault):
    content_type: str
    size: int | None
    """In bytes; None: the server did not say, and it was not read to its end."""


class EmptyCommand(Fault):
    pass


class ForbiddenSyntax(Fault):
    command: str


class AbsoluteDirectory(PathFault):
    pass


class CommandTimedOut(Fault):
    command: str
    seconds: float
    stdout: str
    stderr: str


class CommandFailed(Fault):
    command: str
    exit_code: int
    stdout: str
    stderr: str


class ProgramNotFound(Fault):
    program: str


class NoCommandYet(Fault):
    pass


class NoEngine(Fault):
    pass


class Denied(Fault):
    tool: str
    reason: str
    remedy: str
    """What the model can do instead."""
    allow: str = ""
    """What would allow it, for the user alone."""


class ReadOnlyWorkspace(Denied):
    """The workspace is open for reading only."""

    reason: str = "read_only"
    remedy: str = ""
