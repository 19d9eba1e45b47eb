"""Defines parsed patches and their outcomes. Text is bytes here, so that nothing outside an edit can change."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

CONTEXT, REMOVED, ADDED = b" -+"


class Action(Enum):
    """Says what a patch does to a file. A move is an update with a source."""

    CREATE = auto()
    DELETE = auto()
    UPDATE = auto()
    COPY = auto()


@dataclass(frozen=True)
class Chunk:
    """Holds one change, with the context lines that say where it belongs."""

    number: int
    at: int
    """The index in the patch of its first line."""
    lines: tuple[bytes, ...]
    """The lines, each with its sign in front: context, removed or added."""
    anchors: tuple[bytes, ...] = ()
    """Lines above the change, the outermost first."""
    start: int | None = None
    """The index of the first old line, if the patch gives it."""
    to_end: bool = False
    """True if the patch says that the chunk ends at the end of the file."""
    marked: bool = False
    """True if the patch says whether the last line has a newline; only then `old_open` and `new_open` count."""
    old_open: bool = False
    """True if the old side ends without a newline."""
    new_open: bool = False
    """True if the new side ends without a newline."""
    padding: int = 0
    """The number of empty lines at the end that may only separate the chunk from the next part of the patch."""

    @cached_property
    def old(self) -> list[bytes]:
        """The lines before the change, without signs."""
        return [line[1:] for line in self.lines if line[0] != ADDED]

    @cached_property
    def new(self) -> list[bytes]:
        """The lines after the change, without signs."""
        return [line[1:] for line in self.lines if line[0] != REMOVED]

    @cached_property
    def margins(self) -> tuple[int, int]:
        """The numbers of context lines before the first changed line and after the last."""
        changed = [i for i, line in enumerate(self.lines) if line[0] != CONTEXT]
        return (changed[0], len(self.lines) - 1 - changed[-1]) if changed else (len(self.lines), 0)


class FilePatch(NamedTuple):
    """Holds what a patch does to one file."""

    action: Action
    path: str
    chunks: tuple[Chunk, ...] = ()
    source: str = ""
    """The file that is moved or copied to `path`; `""` if the patch moves and copies nothing."""
    aliases: tuple[str, ...] = ()
    """Other possible names of the file, because plain diffs give two names."""
    envelope: bool = False
    """True if the patch is an envelope: it may replace files, and each section means the files after the one before."""
    executable: bool | None = None
    """The executable bit; None if the patch does not set it."""


class PatchedContent(NamedTuple):
    """Holds the content and mode of a file."""

    data: bytes
    mode: int | None = None
    """Permission bits; None for a new file whose patch gives no mode."""


class PatchOutcome(NamedTuple):
    """Holds the outcome for one name. A move has two outcomes: the new name, and the old name that disappears."""

    path: str
    before: PatchedContent | None
    after: PatchedContent | None
    moved_from: str = ""
    moved_to: str = ""

    @property
    def created(self) -> bool:
        return self.before is None

    @property
    def deleted(self) -> bool:
        return self.after is None
