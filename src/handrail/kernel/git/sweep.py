"""Finds entries in git directories that ordinary git work does not create, and sets them aside."""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from handrail.kernel.git.repositories import (
    TICK_NS,
    GitDirectory,
    names_in,
    open_directory,
    read_plain,
)
from handrail.model.limits import MIB
from handrail.ops.git_names import (
    DEEP,
    OCCUPIED,
    OCCUPIED_LINKED,
    SHALLOW,
    UNFINISHED,
    belongs,
    gives_orders,
    is_harmless,
    may_be_written,
)

_LINKED = {*OCCUPIED_LINKED, "commondir", "gitdir", "locked"}
_LONGEST_PATH = 4096
"""The longest path of a directory in bytes: git cannot open a longer one."""


class Offence(NamedTuple):
    """Holds an entry in a git directory that does not belong there."""

    directory: str
    name: str
    """The path in the directory."""
    why: str
    """link, special, unknown, orders, outside, large, replaced, submodule"""
    mark: str
    """Identifies the entry: another entry of the same name has another mark."""

    @property
    def path(self) -> str:
        return f"{self.directory}/{self.name}"


class _SweptDirectory(NamedTuple):
    """Holds the result of listing one directory."""

    ctime_ns: int
    inode: int
    offences: list[Offence]
    below: list[str]


class Sweep:
    """Searches git directories for offences. Does not list a directory again if nothing changed in it."""

    def __init__(self, root_fd: int, most_directories: int, deepest: int) -> None:
        self._root_fd, self._most, self._deepest = root_fd, most_directories, deepest
        self._listed: dict[str, _SweptDirectory] = {}
        self.cut = False
        """True if there were more directories than the limit allows."""

    def search(self, directories: Iterable[GitDirectory]) -> list[Offence]:
        """Return the offences in some git directories."""
        found: list[Offence] = []
        self.cut, count = False, 0
        for directory in directories:
            waiting = [""]
            while waiting:
                listed = self._list(directory, waiting.pop(0))
                count += 1
                if listed is None:
                    continue
                found += listed.offences
                waiting += listed.below
                if count > self._most:
                    self.cut = True
                    break
            found += self._orders(directory.path)
        return found

    def _list(self, directory: GitDirectory, inside: str) -> _SweptDirectory | None:
        path = f"{directory.path}/{inside}" if inside else directory.path
        try:
            fd = open_directory(self._root_fd, path)
        except OSError:
            return None  # deleted meanwhile
        try:
            listed_at, about = time.time_ns(), os.fstat(fd)
            known = self._listed.get(path)
            if known is not None and (known.ctime_ns, known.inode) == (about.st_ctime_ns, about.st_ino):
                return known
            listed = _SweptDirectory(about.st_ctime_ns, about.st_ino, [], [])
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._judge(directory, inside, entry, listed)
        finally:
            os.close(fd)
        if about.st_ctime_ns + TICK_NS < listed_at:
            self._listed[path] = listed
        return listed

    def _judge(self, directory: GitDirectory, inside: str, entry: "os.DirEntry[str]", listed: _SweptDirectory) -> None:
        """Add an entry to the offences, or to the directories to search, or to neither."""
        name = f"{inside}/{entry.name}" if inside else entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.is_symlink():
            why = "link"
        elif not inside and entry.name in (_LINKED if directory.linked else OCCUPIED):
            return  # guarded by a mount
        elif is_directory and (name.count("/") >= self._deepest or len(os.fsencode(name)) > _LONGEST_PATH):
            why = "unknown"  # ordinary work makes no such directory; to search below it would take too long
        elif not is_directory and not entry.is_file(follow_symlinks=False):
            why = "special"
        elif not inside:
            why = "" if may_be_written(name, is_directory=is_directory) else "unknown"
        else:
            why = "" if belongs(inside, entry.name) else "unknown"
        if why:
            listed.offences.append(Offence(directory.path, name, why, _mark_of(entry) if why == "link" else why))
        elif is_directory and _is_searched(name):
            listed.below.append(name)

    def _orders(self, directory: str) -> Iterator[Offence]:
        """Yield unfinished operations that would run a command, or that have unreadable files."""
        for name in (*sorted(UNFINISHED), ""):
            contents, harmless = [], True
            for each in names_in(self._root_fd, f"{directory}/{name}" if name else directory):
                inside = f"{name}/{each}" if name else each
                if gives_orders(inside):
                    content = read_plain(self._root_fd, f"{directory}/{inside}", MIB)
                    contents.append(content or b"")
                    harmless = harmless and content is not None and is_harmless(inside, content)
                    if not name and not harmless:
                        yield Offence(directory, inside, "orders", fingerprint(content or b""))
                        harmless = True
            if not harmless:
                yield Offence(directory, name, "orders", fingerprint(b"|".join(contents)))


def fingerprint(content: bytes) -> str:
    """Return a hash that identifies a content; no other content has the same."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _mark_of(entry: "os.DirEntry[str]") -> str:
    """Return the mark of a link: inode and ctime, because the system reuses inode numbers."""
    try:
        about = entry.stat(follow_symlinks=False)
    except OSError:
        return "gone"
    return f"{about.st_ino} {about.st_ctime_ns}"


def _is_searched(name: str) -> bool:
    top = name.partition("/")[0]
    return top in DEEP or top in UNFINISHED or name in SHALLOW
