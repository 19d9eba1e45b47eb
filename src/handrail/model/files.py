"""What the kernel hands out and takes back: plain values."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os  # noqa: TID251  for a type


class Version(NamedTuple):
    """What a file was when it was looked at."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: "os.stat_result") -> "Version":
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class File(NamedTuple):
    path: str
    """As the caller wrote it."""
    data: bytes
    version: Version
    mode: int
    place: str = ""
    """Where it lies beneath the root, links resolved; empty where the system cannot say."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of a file. `first` is the number of the first one, counted from 1."""

    data: bytes
    first: int
    count: int
    total_lines: int
    size: int
    cut: bool = False
    """The page itself was too large and ends early."""
    complete: bool = True
    """Otherwise the time was not enough to count all lines: there are `total_lines` at least."""
    version: Version | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)

    @property
    def more(self) -> bool:
        return self.cut or not self.complete or self.first - 1 + self.count < self.total_lines


class FileEntry(NamedTuple):
    name: str
    kind: str
    """file, directory, link (broken, or leading out), other"""
    size: int
    mtime_ns: int
    is_link: bool = False

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"


class Listing(NamedTuple):
    """What a directory holds, in order of the names."""

    directories: list[str]
    files: list[str]
    others: list[FileEntry]
    """Links, and what is neither file nor directory."""

    def through_links(self) -> tuple[list[str], list[str]]:
        """Directories and all else, a link to a directory being one."""
        directories = [each.name for each in self.others if each.is_directory]
        files = [each.name for each in self.others if not each.is_directory]
        return sorted(self.directories + directories), sorted(self.files + files)


class Put(NamedTuple):
    """Write a file whole. `base` is what the new content was worked out from; None: there must be none yet."""

    path: str
    data: bytes
    base: File | None = None
    mode: int | None = None


class Remove(NamedTuple):
    """Delete a file, or a link itself. `base` is what it was known as; None: whatever is there."""

    path: str
    base: File | None = None


class MakeDirectory(NamedTuple):
    path: str
    mode: int | None = None


class Node(NamedTuple):
    """What stands under a name: a file with its content, a link with its target, or a directory."""

    kind: str
    data: bytes
    mode: int
    version: Version | None = None
    """Where it was read from the disk."""
    inside: "tuple[tuple[str, Node], ...]" = ()
    """What a directory holds, by name: told only where the whole of it comes or goes."""

    def beneath(self, stem: str = "") -> "Iterator[tuple[str, Node]]":
        """All that is in it, the outermost first, each under its path."""
        for name, node in self.inside:
            yield stem + name, node
            yield from node.beneath(f"{stem}{name}/")

    def same(self, other: "Node | None") -> bool:
        return other is not None and (self.kind, self.data) == (other.kind, other.data)


class Restore(NamedTuple):
    """Make a name what it was: a file, a link, or nothing. The name itself is meant, never what it links to.

    A directory is on one side only where the other has a file or a link, and then with all that is in it.
    """

    path: str
    base: Node | None
    """What was found there; None: nothing was."""
    to: Node | None

    @property
    def turns(self) -> bool:
        """Whether a name becomes a directory, or ceases to be one."""
        return "directory" in (self.base and self.base.kind, self.to and self.to.kind)

    def beneath(self) -> Iterator[tuple[str, Node | None, Node | None]]:
        """What comes and goes along with it: path, before, after."""
        for rel, node in self.base.beneath() if self.base else ():
            yield rel, node, None
        for rel, node in self.to.beneath() if self.to else ():
            yield rel, None, node._replace(mode=mode_for(node)) if node.kind == "file" else node


class RemoveDirectory(NamedTuple):
    """Take a directory away if it is empty once the other changes are made."""

    path: str


Change = Put | Remove | MakeDirectory | Restore | RemoveDirectory


def mode_for(new: "Put | Node", old: File | Node | None = None) -> int:
    """Return the mode of a file that gets this content: a set-id bit stays only if the content stays; none is added.

    The kernel drops these bits when a file is written; a new file in the place of the old one is written, too.
    """
    mode = new.mode if new.mode is not None else old.mode if old is not None else 0o666
    kept = _set_ids(old.mode) if old is not None and old.data == new.data else 0
    return mode & ~(_set_ids(mode) & ~kept)


def _set_ids(mode: int) -> int:
    """Return the bits that lend an identity: set-group-id does so only where the group may run the file."""
    return mode & (stat.S_ISUID | (stat.S_ISGID if mode & stat.S_IXGRP else 0))


def kind_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"
