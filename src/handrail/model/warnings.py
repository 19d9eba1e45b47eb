"""What is said beside an answer: facts like faults, worded like them, but nothing failed.

Note:
├── RootReplaced           the root's name leads elsewhere now
├── FilesSkipped · DepthReached · SearchIncomplete · AllHidden · LinesCut
├── MorePages · LinesUncounted
├── SandboxDied · SandboxRestarted · SandboxRefused · ProtectedInToolsOnly
├── NotRemembered          what is protected now could not be kept for later sessions
├── GitSetAside · GitNotSetAside · GitArmed · GitUnseen    what a command left in git directories
├── NotAllTyped            the program in a terminal does not read
├── NotJournaled           a change could not be recorded, and so cannot be undone
├── NotPutRight            what a change began is still to be taken back or cleared away
├── JournaledElsewhere     it is recorded where temporary files are, as the state directory cannot be used
└── NotKept                a command changed files whose former contents were not kept

"""

from handrail.model.faults import Fault


class Note(Fault):
    pass


class RootReplaced(Note):
    pass


class FileSkipped(Note):
    name: str
    why: str
    """too_large, unreadable, abandoned, rules"""


class MoreFilesSkipped(Note):
    count: int
    why: str


class DepthReached(Note):
    count: int
    names: list[str]


class SearchIncomplete(Note):
    pass


class AllHidden(Note):
    pass


class LinesCut(Note):
    count: int


class LinesUncounted(Note):
    seconds: float


class MorePages(Note):
    shown: int
    total: int
    page: int
    """The next one."""


class RuleNotStored(Note):
    why: str


class SandboxDied(Note):
    pass


class SandboxRestarted(Note):
    pass


class SandboxReduced(Note):
    wanted: str
    why: str


class SandboxRefused(Note):
    kind: str
    path: str


class ProtectedInToolsOnly(Note):
    level: str


class NotRemembered(Note):
    why: str


class GitSetAside(Note):
    name: str
    why: str
    """link, special, unknown, orders, outside, submodule"""
    where: str


class GitNotSetAside(Note):
    name: str
    why: str
    trouble: str


class GitArmed(Note):
    path: str
    what: str
    """What would run: hooks, configuration, redirection, orders"""


class GitUnseen(Note):
    what: str


class NotAllTyped(Note):
    written: int
    size: int


class NotJournaled(Note):
    why: str


class NotPutRight(Note):
    why: str


class JournaledElsewhere(Note):
    path: str
    why: str


class NotKept(Note):
    count: int
    names: list[str]


class ScanIncomplete(Note):
    limit: int
