"""One look over a workspace's tree: what is protected there, under which names, and where no look is possible.

A rule protects by name and by place. What is known from an earlier look is protected under every name, and so is what a
protected link leads to; a directory protects all that lies in it.
"""

import ctypes
import errno
import os
import stat
import struct as binary
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from handrail.kernel.fs.resolver import O_PATH, place_of
from handrail.kernel.fs.syscalls import libc_function
from handrail.model.record import record
from handrail.ops.glob.protected_names import Protection

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TARGET = O_PATH | os.O_NONBLOCK | os.O_CLOEXEC if O_PATH else os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_STATX_BTIME, _STATX_BYTES, _BTIME_AT = 0x800, 256, 80
_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_UNJUDGED = None

Identity = tuple[int, int]


class ProtectedNode(NamedTuple):
    """How a protected file or directory is known again, whatever its name is by then."""

    rule: str
    born: int
    """In nanoseconds; 0 where it is not known."""
    size: int
    mtime_ns: int

    def is_still(self, found: os.stat_result) -> bool:
        return (self.size, self.mtime_ns) == (found.st_size, found.st_mtime_ns)

    def is_same(self, found: os.stat_result, born: int) -> bool:
        """Tells the same file, edited or not, from a new one with the number of one that is gone."""
        return self.born == born if self.born and born else self.is_still(found)

    def is_kept_as(self, kept: "ProtectedNode | None") -> bool:
        """Whether what is kept suffices to know it again."""
        return kept is not None and (kept == self or (kept[:2] == self[:2] and self.born != 0))


@record
class ProtectedNames:
    masks: dict[str, Identity] = field(default_factory=dict)
    """The outermost protected names, and what stands there; links only if they lead outside."""
    rules: dict[str, str] = field(default_factory=dict)
    """What protects these names, and links."""
    unnamed: dict[str, str] = field(default_factory=dict)
    """Those of them that no rule names: protected by what they are, or by what leads there."""
    files: dict[int, ProtectedNode] = field(default_factory=dict)
    """Every protected file and directory, by its inode number."""
    lasting: dict[int, ProtectedNode] = field(default_factory=dict)
    """The outermost protected files and directories, by number: later sessions should know them again."""
    missing: set[int] = field(default_factory=set)
    """Those of an earlier look that are nowhere now."""
    blind: list[str] = field(default_factory=list)
    """Directories that cannot be looked into, but that a command could make accessible."""


class ProtectionScan:
    """Makes one look. `known` is every protected file of earlier looks, `lasting` those that must be found again."""

    def __init__(
        self,
        root_fd: int,
        protection: Protection,
        known: Mapping[int, ProtectedNode],
        lasting: Mapping[int, ProtectedNode],
    ) -> None:
        self._root_fd, self._protection, self._known, self._lasting = root_fd, protection, known, lasting
        self._look = ProtectedNames()
        self._fd = -1
        self._waiting: list[tuple[str, str | None, str]] = []
        """Directories to list: prefix, prefix by which rules judge its names (None: not at all), rule from above."""
        self._met: set[int] = set()
        self._several: dict[int, ProtectedNode] = {}
        self._followed: set[str] = set()

    def look(self) -> ProtectedNames:
        self._walk("", "")
        if self._several:
            for prefix in ("", ".git/"):
                self._walk_by_number(prefix, self._several)
        look = self._look
        look.missing = self._lasting.keys() - self._met
        if look.missing:  # `.git` is not searched otherwise: it is large, and its names mean something else
            self._walk_by_number(".git/", {number: self._lasting[number] for number in look.missing})
            look.missing -= self._met
        return look

    def _walk_by_number(self, prefix: str, wanted: Mapping[int, ProtectedNode]) -> None:
        self._known = wanted
        self._walk(prefix, _UNJUDGED)

    def _walk(self, prefix: str, judged: str | None) -> None:
        self._waiting.append((prefix, judged, ""))
        while self._waiting:
            self._list(*self._waiting.pop())

    def _list(self, prefix: str, judged: str | None, above: str) -> None:
        try:
            self._fd = os.open(prefix or ".", _DIRECTORY, dir_fd=self._root_fd)
        except OSError as error:
            if error.errno not in _GONE and not self._is_a_strangers(prefix, error):
                self._look.blind.append(prefix.rstrip("/"))
            return
        try:
            with os.scandir(self._fd) as entries:
                for entry in entries:
                    self._consider(entry, prefix, judged, above)
        finally:
            os.close(self._fd)

    def _is_a_strangers(self, prefix: str, error: OSError) -> bool:
        """Whether a directory is closed to us by another user, and so to every command."""
        if error.errno not in (errno.EACCES, errno.EPERM):
            return False
        try:
            return os.stat(prefix, dir_fd=self._root_fd, follow_symlinks=False).st_uid != os.geteuid()
        except OSError:
            return False

    def _consider(self, entry: "os.DirEntry[str]", prefix: str, judged: str | None, above: str) -> None:
        path, rule = prefix + entry.name, above
        if not rule and judged is not None:
            rule = self._protection.rule_for(judged + entry.name)
        if not rule and entry.inode() in self._known:
            rule = self._rule_of_known(entry)
        if rule:
            self._note(entry, path, rule, outermost=not above)
        if entry.is_dir(follow_symlinks=False):
            if rule or self._is_worth_listing(entry.name, path, judged, prefix):
                self._waiting.append((f"{path}/", None if judged is None else f"{judged}{entry.name}/", rule))
        elif not rule and judged is not None and entry.is_symlink() and self._protection.may_hold(judged + entry.name):
            self._follow(path, f"{judged}{entry.name}/")

    def _is_worth_listing(self, name: str, path: str, judged: str | None, prefix: str) -> bool:
        if path == ".git":
            return False
        if judged is None:
            return path not in self._look.rules
        return judged == prefix or self._protection.may_hold(judged + name)

    def _rule_of_known(self, entry: "os.DirEntry[str]") -> str:
        found, seen = _stat(entry), self._known.get(entry.inode())
        if found is None or seen is None or not seen.is_same(found, _born(found, entry.name, self._fd)):
            return ""
        return seen.rule

    def _note(self, entry: "os.DirEntry[str]", path: str, rule: str, *, outermost: bool) -> None:
        found = _stat(entry)
        if found is None:
            return
        if outermost:
            self._mark(path, found, rule, _born(found, entry.name, self._fd))
        self._note_file(found, rule)
        if stat.S_ISLNK(found.st_mode):
            self._note_target(path, rule)

    def _mark(self, path: str, found: os.stat_result, rule: str, born: int) -> None:
        self._look.rules[path] = rule
        if not self._protection.rule_for(path):
            self._look.unnamed[path] = rule
        if not stat.S_ISLNK(found.st_mode):  # of a link, what it leads to is covered
            self._look.masks[path] = (found.st_dev, found.st_ino)
            self._look.lasting[found.st_ino] = ProtectedNode(rule, born, found.st_size, found.st_mtime_ns)

    def _note_file(self, found: os.stat_result, rule: str) -> None:
        self._met.add(found.st_ino)
        if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            seen = self._look.files[found.st_ino] = ProtectedNode(rule, 0, found.st_size, found.st_mtime_ns)
            if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                self._several[found.st_ino] = seen

    def _note_target(self, path: str, rule: str) -> None:
        """What a protected link leads to is protected too, but for what the link itself lies in."""
        try:
            fd = os.open(path, _TARGET, dir_fd=self._root_fd)
        except OSError:
            return  # it leads nowhere, or where we may not go either
        try:
            found, place = os.fstat(fd), place_of(fd, self._root_fd)
            if place is not None and f"{path}/".startswith(f"{place}/" if place else ""):
                return
            self._note_file(found, rule)
            if place is None:  # outside, where a command may be shown it
                self._look.masks[path] = (found.st_dev, found.st_ino)
                return
            if self._is_covered(place):
                return
            self._mark(place, found, rule, _born(found, "", fd))
            if stat.S_ISDIR(found.st_mode):
                self._waiting.append((f"{place}/", f"{place}/", rule))
        finally:
            os.close(fd)

    def _is_covered(self, place: str) -> bool:
        return any(above in self._look.rules for above in with_parents(place))

    def _follow(self, path: str, judged: str) -> None:
        """A rule that names what lies behind an ordinary link means what the link leads to."""
        if path in self._followed:
            return
        self._followed.add(path)
        try:
            fd = os.open(path, _TARGET | os.O_DIRECTORY, dir_fd=self._root_fd)
        except OSError:
            return  # it leads to no directory
        try:
            place = place_of(fd, self._root_fd)
        finally:
            os.close(fd)
        if place is not None:
            self._waiting.append((f"{place}/" if place else "", judged, ""))


def with_parents(place: str) -> list[str]:
    """A path and the directories that it lies in, the outermost first."""
    parts = place.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _stat(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        return None


def _born(found: os.stat_result, name: str, dir_fd: int) -> int:
    """When a file came into being; 0 where the system does not say. An empty name means the handle itself."""
    told = getattr(found, "st_birthtime_ns", 0) or int(getattr(found, "st_birthtime", 0) * 1_000_000_000)
    statx = libc_function("statx")
    if told or statx is None:
        return told
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(dir_fd, os.fsencode(name), _NO_FOLLOW | _EMPTY_PATH, _STATX_BTIME, answer):
        return 0
    mask, seconds, nanoseconds = binary.unpack_from(f"=I{_BTIME_AT - 4}xqI", answer.raw)
    return seconds * 1_000_000_000 + nanoseconds if mask & _STATX_BTIME else 0
