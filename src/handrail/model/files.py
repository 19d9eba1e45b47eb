"""Defines the values that the kernel returns (files, pages, listings) and accepts (changes)."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os  # noqa: TID251  only for a type annotation


class Version(NamedTuple):
    """Identifies one state of a file: a file that changes gets another version."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: "os.stat_result") -> "Version":
        """Return the version that a stat result describes."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class File(NamedTuple):
    """Holds a file that was read whole."""

    path: str
    """The path as the caller wrote it."""
    data: bytes
    version: Version
    mode: int
    place: str = ""
    """The path relative to the root with all links resolved; empty if the system cannot tell."""


@dataclass(frozen=True, slots=True)
class Page:
    """Holds some consecutive lines of a file."""

    data: bytes
    first: int
    """The number of the first line, counted from 1."""
    count: int
    total_lines: int
    size: int
    cut: bool = False
    """True if the page was too large and ends early."""
    complete: bool = True
    """False if the time limit ended the count of lines: the file then has at least `total_lines` lines."""
    version: Version | None = field(default=None, compare=False)
    place: str = field(default="", compare=False)

    @property
    def more(self) -> bool:
        """True if the file has, or may have, more lines after this page."""
        return self.cut or not self.complete or self.first - 1 + self.count < self.total_lines


class FileEntry(NamedTuple):
    """Describes one name in a directory."""

    name: str
    kind: str
    """One of: file, directory, link (broken, or its target is outside the root), other."""
    size: int
    mtime_ns: int
    is_link: bool = False

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"


class Listing(NamedTuple):
    """Holds the names in a directory, each list in the order of the names."""

    directories: list[str]
    files: list[str]
    others: list[FileEntry]
    """Links, and entries that are neither a file nor a directory."""

    def through_links(self) -> tuple[list[str], list[str]]:
        """Return the directories, links to directories included, and all other names."""
        directories = [each.name for each in self.others if each.is_directory]
        files = [each.name for each in self.others if not each.is_directory]
        return sorted(self.directories + directories), sorted(self.files + files)


class Put(NamedTuple):
    """Writes a whole file."""

    path: str
    data: bytes
    base: File | None = None
    """The file from which the new content was made; None if the path must not exist yet."""
    mode: int | None = None


class Remove(NamedTuple):
    """Deletes a file, or a link itself."""

    path: str
    base: File | None = None
    """The file as the caller read it; None to delete any file at the path."""


class MakeDirectory(NamedTuple):
    """Creates a directory."""

    path: str
    mode: int | None = None


class Node(NamedTuple):
    """Holds the state of one name: a file with its content, a link with its target, or a directory."""

    kind: str
    data: bytes
    mode: int
    version: Version | None = None
    """The version of the file, if it was read from the disk."""
    inside: "tuple[tuple[str, Node], ...]" = ()
    """The entries of a directory, by name; filled only if the whole directory is created or deleted."""

    def descendants(self, stem: str = "") -> "Iterator[tuple[str, Node]]":
        """Yield every entry inside this directory with its path; a directory comes before its entries."""
        for name, node in self.inside:
            yield stem + name, node
            yield from node.descendants(f"{stem}{name}/")

    def same(self, other: "Node | None") -> bool:
        """Return whether both have the same kind and content; modes do not count."""
        return other is not None and (self.kind, self.data) == (other.kind, other.data)


class Restore(NamedTuple):
    """Restores a name to an earlier state: a file, a link, or nothing. It never follows a link.

    One side is a directory only if the other side is a file or a link. The directory then includes its entries.
    """

    path: str
    base: Node | None
    """The state that the caller found; None if nothing was there."""
    to: Node | None
    """The state to restore; None to remove the name."""

    @property
    def swaps_directory(self) -> bool:
        """True if exactly one side of the change is a directory."""
        return "directory" in (self.base and self.base.kind, self.to and self.to.kind)

    def inner_changes(self) -> Iterator[tuple[str, Node | None, Node | None]]:
        """Yield path, old state and new state of every entry that goes or comes with a directory."""
        for rel, node in self.base.descendants() if self.base else ():
            yield rel, node, None
        for rel, node in self.to.descendants() if self.to else ():
            yield rel, None, node._replace(mode=mode_for(node)) if node.kind == "file" else node


class RemoveDirectory(NamedTuple):
    """Removes a directory if it is empty after the other changes."""

    path: str


Change = Put | Remove | MakeDirectory | Restore | RemoveDirectory


def mode_for(new: "Put | Node", old: File | Node | None = None) -> int:
    """Return the mode of a file that gets this content: a set-id bit stays only if the content stays; none is added.

    The operating system drops these bits when a process writes a file. A new file that replaces the old one must
    lose them too.
    """
    mode = new.mode if new.mode is not None else old.mode if old is not None else 0o666
    kept = _set_ids(old.mode) if old is not None and old.data == new.data else 0
    return mode & ~(_set_ids(mode) & ~kept)


def _set_ids(mode: int) -> int:
    """Return the set-id bits that have an effect: set-group-id has one only if the group may run the file."""
    return mode & (stat.S_ISUID | (stat.S_ISGID if mode & stat.S_IXGRP else 0))


def kind_of(mode: int) -> str:
    """Return the kind of an entry by its mode: file, directory, link or other."""
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"
