"""Declares every warning that an answer may carry. A warning has facts, no sentences.

    ToolWarning
    ├── RootReplaced           the path of the root now leads to another directory
    ├── FileSkipped · MoreFilesSkipped · DepthReached · SearchIncomplete · LinesCut
    ├── HiddenMatches · HiddenUnsearched    ignore files hide what a search without a match would have found
    ├── MorePages · LinesUncounted · AnswerCut · OutputCut · FilesLeftOut · LongFile
    ├── RuleNotStored          the call was approved, but its rule could not be stored
    ├── ProcessesLeft · ProcessesEnded    background processes of a command or a terminal
    ├── SandboxDied · SandboxRestarted · SandboxReduced · SandboxRefused
    ├── RightsEnded            processes of a command with more rights were ended with it
    ├── HostRefused            the proxy refused a connection of a command
    ├── ProtectedInToolsOnly   commands can read protected files at this sandbox level
    ├── NotRemembered          later sessions may not know a moved protected file
    ├── GitSetAside · GitNotSetAside · GitArmed · GitUnseen    files that a command left in git directories
    ├── GitIdentityMissing     a commit needs an author, and the user's configuration names none
    ├── NotAllTyped            the program in a terminal does not read its input
    ├── NotJournaled           a change could not be recorded, so that undo cannot revert it
    ├── CleanupFailed          the cleanup after a change failed; the next change retries it
    ├── JournaledElsewhere     the journal is in a temporary directory: the state directory cannot be used
    ├── HookSaid · HookBroken · HookChanged    what the user's hooks said and did after the call
    ├── CellToolExists         a notebook was changed as text, and the dialect has a tool for cells
    ├── PromptNotRun           a fetch returned the page itself: Handrail runs no prompt on it
    ├── NotKept                a command changed files whose former contents were not kept
    ├── UndoPartial            undo cannot restore some files and directories if a command changes them
    └── ScanIncomplete         a command may have changed more files than were watched

The sentences are in `tools/warning_messages.py`.
"""

from handrail.model.facts import FactRecord


class ToolWarning(FactRecord):
    """The base of all warnings."""


class RootReplaced(ToolWarning):
    """The path of the root now leads to another directory; the session still works in the original."""


class FileSkipped(ToolWarning):
    """A search did not read a file."""

    name: str
    why: str
    """One of: too_large, unreadable, abandoned, rules."""
    limit: int = 0
    """The size limit of a search that has one."""


class MoreFilesSkipped(ToolWarning):
    """A search skipped more files than the answer names."""

    count: int
    why: str
    limit: int = 0


class DepthReached(ToolWarning):
    """A search did not enter directories below its depth limit."""

    count: int
    example: str
    """One of the directories."""
    depth: int


class SearchIncomplete(ToolWarning):
    """A search reached its time limit; its counts are lower bounds."""


class HiddenMatches(ToolWarning):
    """A search found nothing, but there are matches in files that ignore files or exclusions hide."""

    count: int
    what: str
    """One of: lines, files."""
    by: list[str]
    example: str
    complete: bool


class HiddenUnsearched(ToolWarning):
    """A search found nothing, and its look through hidden files reached its time limit without a match."""

    seconds: float


class LinesCut(ToolWarning):
    """A search shows only a part of some long lines."""

    count: int


class LinesUncounted(ToolWarning):
    """The time limit ended the count of a file's lines; the file may have more."""

    seconds: float


class MorePages(ToolWarning):
    """A listing continues on the next page."""

    shown: int
    total: int
    page: int
    """The number of the next page."""


class AnswerCut(ToolWarning):
    """An answer shows only the first elements of its lists, to stay within its budget."""

    shown: int
    total: int
    tokens: int
    how: str
    """The way to see the rest."""


class OutputCut(ToolWarning):
    """An answer shows only a part of what a command printed, by a limit of its dialect."""

    count: int
    """The number of bytes that are not shown."""
    path: str
    """A file with all of it; empty if there is none."""


class FilesLeftOut(ToolWarning):
    """An answer names only the newest of the files that were found, by a limit of its dialect."""

    shown: int
    total: int


class LongFile(ToolWarning):
    """A file that was read is longer than the budget of an answer."""

    first: int
    last: int
    total: int
    tokens: int
    """About how many tokens the whole file has."""


class RuleNotStored(ToolWarning):
    """The call was approved, but the rule for later calls could not be stored."""

    why: str


class ProcessesLeft(ToolWarning):
    """A command left processes in the background; they live until the session ends."""

    pids: list[int]


class ProcessesEnded(ToolWarning):
    """Background processes ended together with the terminal that they were started in."""

    count: int


class SandboxDied(ToolWarning):
    """The sandbox ended while a command ran, and ended the command."""


class SandboxRestarted(ToolWarning):
    """The sandbox had ended with all its processes; a new one was started."""


class SandboxReduced(ToolWarning):
    """The machine provides only a reduced sandbox."""

    wanted: str
    why: str


class SandboxRefused(ToolWarning):
    """The sandbox refused something that a command tried."""

    kind: str
    """One of: write_outside, guarded, git_config, packages, network, network_tried, direct, processes, memory, disk."""
    path: str


class RightsEnded(ToolWarning):
    """Processes that a command with more rights left behind were ended with it."""

    count: int


class HostRefused(ToolWarning):
    """The proxy refused a connection of a command."""

    host: str
    """The host, with its port if that is not a usual one; empty if the command named none."""
    why: str
    """A key of `STATUS` in kernel/network/refusals.py."""
    detail: str


class ProtectedInToolsOnly(ToolWarning):
    """Commands can read protected files at this sandbox level."""

    level: str


class NotRemembered(ToolWarning):
    """A list of protected files could not be stored, so that later sessions may read a moved one."""

    why: str


class GitSetAside(ToolWarning):
    """A file that a command left in a git directory was moved out of git's way."""

    name: str
    why: str
    """One of: link, special, unknown, orders, outside, large, replaced, submodule."""
    where: str


class GitNotSetAside(ToolWarning):
    """A file that a command left in a git directory could not be moved."""

    name: str
    why: str
    trouble: str


class GitArmed(ToolWarning):
    """A command made or changed a repository in which git may run programs."""

    path: str
    what: str
    """The things that git would run: hooks, configuration, redirection, orders."""


class GitUnseen(ToolWarning):
    """Something in a git directory is too large to be checked."""

    what: str


class GitIdentityMissing(ToolWarning):
    """Git made no commit: neither the user's configuration nor the repository names an author."""


class NotAllTyped(ToolWarning):
    """The program in a terminal read only a part of the typed input."""

    written: int
    size: int


class NotJournaled(ToolWarning):
    """A change could not be recorded, so that undo cannot revert it."""

    why: str


class CleanupFailed(ToolWarning):
    """The cleanup after a change failed; the next change retries it."""

    why: str


class JournaledElsewhere(ToolWarning):
    """The journal is in a temporary directory, because the state directory cannot be used."""

    path: str
    why: str


class NotKept(ToolWarning):
    """A command changed files whose former contents were not kept."""

    count: int
    names: list[str]


class UndoPartial(ToolWarning):
    """Undo cannot restore some files and directories if a command changes them: they are too large or too many."""

    count: int
    names: list[str]


class ScanIncomplete(ToolWarning):
    """The workspace has more files than a command is watched for."""

    limit: int


class HookSaid(ToolWarning):
    """A hook has a text for the model."""

    text: str


class HookBroken(ToolWarning):
    """A hook that runs after calls failed."""

    why: str
    allow: str = ""
    """What the user can repair. The model never sees it."""


class HookChanged(ToolWarning):
    """A hook, such as a formatter, changed files that the call had just changed."""

    names: list[str]


class CellToolExists(ToolWarning):
    """A notebook was changed as text, and the dialect has a tool for cells."""

    tool: str


class PromptNotRun(ToolWarning):
    """A fetch returned the page itself: Handrail runs no prompt on it."""
