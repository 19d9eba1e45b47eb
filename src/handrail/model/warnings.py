"""Declares every warning that an answer may carry. A warning has facts, no sentences.

    class Note
    ├── RootReplaced           the path of the root now leads to another directory
    ├── FileSkipped · MoreFilesSkipped · DepthReached · SearchIncomplete · LinesCut
    ├── HiddenMatches · HiddenUnsearched    ignore files hide what a search without a match would have found
    ├── MorePages · LinesUncounted
    ├── RuleNotStored          the call was approved, but its rule could not be stored
    ├── ProcessesLeft · ProcessesEnded    background processes of a command or a terminal
    ├── SandboxDied · SandboxRestarted · SandboxReduced · SandboxRefused
    ├── ProtectedInToolsOnly   commands can read protected files at this sandbox level
    ├── NotRemembered          later sessions may not know a moved protected file
    ├── GitSetAside · GitNotSetAside · GitArmed · GitUnseen    files that a command left in git directories
    ├── NotAllTyped            the program in a terminal does not read its input
    ├── NotJournaled           a change could not be recorded, so that undo cannot revert it
    ├── CleanupFailed          the cleanup after a change failed; the next change retries it
    ├── JournaledElsewhere     the journal is in a temporary directory: the state directory cannot be used
    ├── NotKept                a command changed files whose former contents were not kept
    └── ScanIncomplete         a command may have changed more files than were watched

The sentences are in `tools/warning_messages.py`.
"""

from handrail.model.faults import Fault


class Note(Fault):
    """The base of all warnings. A note shares the facts of `Fault`, but no code raises it."""


class RootReplaced(Note):
    """The path of the root now leads to another directory; the session still works in the original."""


class FileSkipped(Note):
    """A search did not read a file."""

    name: str
    why: str
    """One of: too_large, unreadable, abandoned, rules."""


class MoreFilesSkipped(Note):
    """A search skipped more files than the answer names."""

    count: int
    why: str


class DepthReached(Note):
    """A search did not enter directories below its depth limit."""

    count: int
    names: list[str]


class SearchIncomplete(Note):
    """A search reached its time limit; its counts are lower bounds."""


class HiddenMatches(Note):
    """A search found nothing, but there are matches in files that ignore files or exclusions hide."""

    count: int
    what: str
    """One of: lines, files."""
    by: list[str]
    example: str
    complete: bool


class HiddenUnsearched(Note):
    """A search found nothing, and its look through hidden files reached its time limit without a match."""

    seconds: float


class LinesCut(Note):
    """A search shows only a part of some long lines."""

    count: int


class LinesUncounted(Note):
    """The time limit ended the count of a file's lines; the file may have more."""

    seconds: float


class MorePages(Note):
    """A listing continues on the next page."""

    shown: int
    total: int
    page: int
    """The number of the next page."""


class RuleNotStored(Note):
    """The call was approved, but the rule for later calls could not be stored."""

    why: str


class ProcessesLeft(Note):
    """A command left processes in the background; they live until the session ends."""

    pids: list[int]


class ProcessesEnded(Note):
    """Background processes ended together with the terminal that they were started in."""

    count: int


class SandboxDied(Note):
    """The sandbox ended while a command ran, and ended the command."""


class SandboxRestarted(Note):
    """The sandbox had ended with all its processes; a new one was started."""


class SandboxReduced(Note):
    """The machine provides only a reduced sandbox."""

    wanted: str
    why: str


class SandboxRefused(Note):
    """The sandbox refused something that a command tried."""

    kind: str
    """One of: write_outside, guarded, network, processes, memory, disk."""
    path: str


class ProtectedInToolsOnly(Note):
    """Commands can read protected files at this sandbox level."""

    level: str


class NotRemembered(Note):
    """A list of protected files could not be stored, so that later sessions may read a moved one."""

    why: str


class GitSetAside(Note):
    """A file that a command left in a git directory was moved out of git's way."""

    name: str
    why: str
    """One of: link, special, unknown, orders, outside, submodule."""
    where: str


class GitNotSetAside(Note):
    """A file that a command left in a git directory could not be moved."""

    name: str
    why: str
    trouble: str


class GitArmed(Note):
    """A command made or changed a repository in which git may run programs."""

    path: str
    what: str
    """What git would run: hooks, configuration, redirection, orders."""


class GitUnseen(Note):
    """Something in a git directory is too large to be checked."""

    what: str


class NotAllTyped(Note):
    """The program in a terminal read only a part of the typed input."""

    written: int
    size: int


class NotJournaled(Note):
    """A change could not be recorded, so that undo cannot revert it."""

    why: str


class CleanupFailed(Note):
    """The cleanup after a change failed; the next change retries it."""

    why: str


class JournaledElsewhere(Note):
    """The journal is in a temporary directory, because the state directory cannot be used."""

    path: str
    why: str


class NotKept(Note):
    """A command changed files whose former contents were not kept."""

    count: int
    names: list[str]


class ScanIncomplete(Note):
    """The workspace has more files than a command is watched for."""

    limit: int
