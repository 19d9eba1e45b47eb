"""What is said beside an answer: facts like faults, worded like them, but nothing failed.

Note:
├── RootReplaced           the root's name leads elsewhere now
├── FilesSkipped · DepthReached · SearchIncomplete · AllHidden · LinesCut
├── MorePages
├── SandboxDied · SandboxRestarted · SandboxRefused · ProtectedInToolsOnly
├── NotAllTyped            the program in a terminal does not read
├── NotJournaled           a change could not be recorded, and so cannot be undone
└── NotKept                a command changed files whose former contents were not kept

"""

from dataclasses import dataclass

from handrail.faults import Fault


@dataclass(eq=False)
class Note(Fault):
    pass


@dataclass(eq=False)
class RootReplaced(Note):
    pass


@dataclass(eq=False)
class FileSkipped(Note):
    name: str
    why: str
    """too_large, unreadable, abandoned"""


@dataclass(eq=False)
class MoreFilesSkipped(Note):
    count: int
    why: str


@dataclass(eq=False)
class DepthReached(Note):
    count: int
    names: list[str]


@dataclass(eq=False)
class SearchIncomplete(Note):
    pass


@dataclass(eq=False)
class AllHidden(Note):
    pass


@dataclass(eq=False)
class LinesCut(Note):
    count: int


@dataclass(eq=False)
class MorePages(Note):
    shown: int
    total: int
    page: int
    """The next one."""


@dataclass(eq=False)
class RuleNotStored(Note):
    why: str


@dataclass(eq=False)
class SandboxDied(Note):
    pass


@dataclass(eq=False)
class SandboxRestarted(Note):
    pass


@dataclass(eq=False)
class SandboxRefused(Note):
    kind: str
    path: str


@dataclass(eq=False)
class ProtectedInToolsOnly(Note):
    level: str


@dataclass(eq=False)
class NotAllTyped(Note):
    written: int
    size: int


@dataclass(eq=False)
class NotJournaled(Note):
    why: str


@dataclass(eq=False)
class NotKept(Note):
    count: int
    names: list[str]


@dataclass(eq=False)
class ScanIncomplete(Note):
    limit: int
