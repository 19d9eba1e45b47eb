"""Files that no tool may reach: by name, by the place that a path leads to, and by identity.

A name says enough for most. Identity is for files that have another name as well: hard links, targets of protected
links, and what was moved out of a protected place. These are known from looking over the whole tree from time to time.
"""

import os
import stat
import threading
import time
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from handrail.faults import ProtectedPath
from handrail.limits import Limits
from handrail.ops.places import folded_path
from handrail.ops.protection import Protection
from handrail.structs import struct

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OWN_RULE = "Handrail's own files"
_CALM = 20
"""How many times as long as a look takes it stays good."""

Identity = tuple[int, int]


class _Seen(NamedTuple):
    rule: str
    size: int
    mtime_ns: int

    def is_still(self, found: os.stat_result) -> bool:
        return (self.size, self.mtime_ns) == (found.st_size, found.st_mtime_ns)


@struct
class _Look:
    """What one look over the tree found."""

    masks: dict[str, Identity] = field(default_factory=dict)
    """The outermost protected names, and what stands there."""
    files: dict[Identity, _Seen] = field(default_factory=dict)
    renamed: dict[Identity, str] = field(default_factory=dict)
    """Protected files that have another name too, with the rule."""


class Wards:
    def __init__(self, root_fd: int, protection: Protection, limits: Limits, own: tuple[str, ...] = ()) -> None:
        """`own` are places beneath the root where our own files lie: a tool that could write there could approve."""
        self._root_fd, self._protection, self._limits = root_fd, protection, limits
        self._own = tuple(f"{folded_path(place)}/" for place in own)
        self._lock = threading.Lock()
        self._latest = _Look()
        self._good_until = 0.0
        self._ever: dict[Identity, _Seen] = {}

    def check_name(self, given: str, place: str) -> None:
        """Refuse a name. Whether there is such a file is not told."""
        rule = self._rule_for(place)
        if rule:
            raise ProtectedPath(given, rule)

    def _rule_for(self, place: str) -> str:
        if self._own and f"{folded_path(place)}/".startswith(self._own):
            return OWN_RULE
        return self._protection.rule_for(place)

    def check_file(self, given: str, found: os.stat_result) -> None:
        rule = self._rule_by_identity(found)
        if rule:
            raise ProtectedPath(given, rule)

    def hides(self, place: str) -> bool:
        """Whether what lies beneath the root at `place` is in no list and no result."""
        if self._rule_for(place):
            return True
        if not self._look().renamed and not self._ever:
            return False
        try:
            found = os.stat(place, dir_fd=self._root_fd, follow_symlinks=False)
        except OSError:
            return False  # gone, or too deep to name: nothing can be shown of it
        return bool(self._rule_by_identity(found))

    def _rule_by_identity(self, found: os.stat_result) -> str:
        identity = (found.st_dev, found.st_ino)
        other_name = identity in self._look().renamed
        seen = self._ever.get(identity)
        if seen is not None and seen.is_still(found):
            return seen.rule  # by whatever name
        if not other_name and seen is None:
            return ""
        # Changed since: the same file edited, or a new one under the number of one that is gone.
        fresh = self._look(fresh=True)
        if identity in fresh.files:
            return fresh.files[identity].rule
        self._ever.pop(identity, None)
        return fresh.renamed.get(identity, "")

    def masks(self) -> dict[str, Identity]:
        """Every protected name that is there now, for a sandbox to cover; with it, all other names of such files."""
        return dict(self._look(fresh=True).masks)

    def _look(self, *, fresh: bool = False) -> _Look:
        with self._lock:
            started = time.monotonic()
            if not self._protection:
                return self._latest
            if fresh or started > self._good_until:
                self._latest = self._look_over()
                self._ever |= self._latest.files
                ended = time.monotonic()
                self._good_until = ended + max(self._limits.protect_seconds, _CALM * (ended - started))
            return self._latest

    def _look_over(self) -> _Look:
        look, several = _Look(), set[int]()
        for path, entry, rule, outermost in self._walk():
            found = _stat(entry) if rule else None
            if found is None:
                continue
            identity = (found.st_dev, found.st_ino)
            if outermost:
                look.masks[path] = identity
            if stat.S_ISREG(found.st_mode):
                look.files[identity] = _Seen(rule, found.st_size, found.st_mtime_ns)
                if found.st_nlink > 1:
                    look.renamed[identity] = rule
                    several.add(found.st_ino)
            elif stat.S_ISLNK(found.st_mode):
                self._note_target(look, path, rule)
        if several:
            self._note_twins(look, several)
        return look

    def _note_target(self, look: _Look, path: str, rule: str) -> None:
        """What a protected link leads to is protected too."""
        try:
            target = os.stat(path, dir_fd=self._root_fd)
        except OSError:
            return  # it leads nowhere
        if stat.S_ISREG(target.st_mode):
            look.renamed[target.st_dev, target.st_ino] = rule

    def _note_twins(self, look: _Look, several: set[int]) -> None:
        for path, entry, rule, _ in self._walk():
            found = _stat(entry) if not rule and entry.inode() in several else None
            if found is not None and (found.st_dev, found.st_ino) in look.renamed:
                look.masks[path] = (found.st_dev, found.st_ino)

    def _walk(self) -> "Iterator[tuple[str, os.DirEntry[str], str, bool]]":
        """Every name beneath the root, no link followed: its path, its rule, and whether it is the outermost so."""
        waiting = [("", "")]
        while waiting:
            prefix, above = waiting.pop()
            try:
                fd = os.open(prefix or ".", _DIRECTORY, dir_fd=self._root_fd)
            except OSError:
                continue  # gone since, unreadable for us too, or too deep to name
            try:
                with os.scandir(fd) as entries:
                    for entry in entries:
                        path = f"{prefix}{entry.name}"
                        rule = above or self._protection.rule_for(path)
                        yield path, entry, rule, bool(rule) and not above
                        if entry.is_dir(follow_symlinks=False) and path != ".git":
                            waiting.append((f"{path}/", rule))
            finally:
                os.close(fd)


def _stat(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        return None
