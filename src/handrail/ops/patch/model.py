"""What a patch says, and what comes of it. Text is bytes here, so that nothing outside an edit can change."""

from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

CONTEXT, REMOVED, ADDED = b" -+"


class Action(Enum):
    CREATE = auto()
    DELETE = auto()
    UPDATE = auto()
    COPY = auto()


@dataclass(frozen=True)
class Chunk:
    """One change, with the lines around it that say where it belongs."""

    number: int
    at: int
    """The line of the patch where it starts."""
    lines: tuple[bytes, ...]
    """Each with its sign in front: context, removed or added."""
    anchors: tuple[bytes, ...] = ()
    """Lines that stand above it, outermost first."""
    start: int | None = None
    """The index of its first old line, if it says so."""
    to_end: bool = False
    """It says that it ends where the file ends."""
    marked: bool = False
    """It says whether the last line has a newline: `old_open` and `new_open` are then to be believed."""
    old_open: bool = False
    new_open: bool = False
    padding: int = 0
    """How many of the last lines are empty and may only be space before the next part of the patch."""

    @cached_property
    def old(self) -> list[bytes]:
        return [line[1:] for line in self.lines if line[0] != ADDED]

    @cached_property
    def new(self) -> list[bytes]:
        return [line[1:] for line in self.lines if line[0] != REMOVED]

    @cached_property
    def margins(self) -> tuple[int, int]:
        """How many lines of context stand before the first change and after the last."""
        changed = [i for i, line in enumerate(self.lines) if line[0] != CONTEXT]
        return (changed[0], len(self.lines) - 1 - changed[-1]) if changed else (len(self.lines), 0)


@dataclass(frozen=True, slots=True)
class FilePatch:
    action: Action
    path: str
    chunks: tuple[Chunk, ...] = ()
    source: str = ""
    """The file that is moved or copied to `path`; `""` if it stays where it is."""
    aliases: tuple[str, ...] = ()
    """Other names under which the file may be found, because plain diffs name two."""
    executable: bool | None = None


@dataclass(frozen=True, slots=True)
class PatchedContent:
    data: bytes
    mode: int | None = None
    """Permission bits; None for a new file that doesn't say."""


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """What becomes of one name. A move is two: the new name, and the old one that is gone."""

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
