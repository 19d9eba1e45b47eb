"""Scans the tree of a workspace for protected files, all their names, and directories that it cannot read.

A rule protects names and paths. A file that an earlier scan found is protected under every name, and so is the target
of a protected link. A protected directory protects everything in it.
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
_WITHOUT_RULES = None

Identity = tuple[int, int]


class ProtectedNode(NamedTuple):
    """Holds the facts by which a later scan recognizes a protected file or directory under any name."""

    rule: str
    born: int
    """Creation time in nanoseconds; 0 if unknown."""
    size: int
    mtime_ns: int

    def is_still(self, found: os.stat_result) -> bool:
        """Return whether size and modification time are unchanged."""
        return (self.size, self.mtime_ns) == (found.st_size, found.st_mtime_ns)

    def is_same(self, found: os.stat_result, born: int) -> bool:
        """Return whether this is the same file, edited or not, and not a new one with a reused inode number."""
        return self.born == born if self.born and born else self.is_still(found)

    def is_kept_as(self, kept: "ProtectedNode | None") -> bool:
        """Return whether the saved facts are enough to recognize this file."""
        return kept is not None and (kept == self or (kept[:2] == self[:2] and self.born != 0))


@record
class ProtectedNames:
    """Holds the result of one scan."""

    masks: dict[str, Identity] = field(default_factory=dict)
    """The outermost protected names, and the identity of each entry; links only if they lead outside the root."""
    rules: dict[str, str] = field(default_factory=dict)
    """The rule for each of these names, and for links."""
    unnamed: dict[str, str] = field(default_factory=dict)
    """The names that no rule matches: protected by the file's identity, or because a protected link leads there."""
    files: dict[int, ProtectedNode] = field(default_factory=dict)
    """Every protected file and directory, by inode number; those inside protected directories, too."""
    lasting: dict[int, ProtectedNode] = field(default_factory=dict)
    """The outermost protected files and directories, by inode number: later sessions should recognize them."""
    missing: set[int] = field(default_factory=set)
    """The inode numbers of an earlier scan that this scan did not find."""
    unreadable: list[str] = field(default_factory=list)
    """Directories that the scan cannot read, but that a command could make readable."""
    too_deep: list[str] = field(default_factory=list)
    """Directories whose path is too long for one system call."""
    covered: list[str] = field(default_factory=list)
    """Directories that the scan cannot list, but that lie in a protected directory, which a sandbox covers."""

    @property
    def is_whole(self) -> bool:
        """True if the scan listed every directory, so that a file that it did not find is gone."""
        return not (self.unreadable or self.too_deep or self.covered)


class ProtectionScan:
    """Runs one scan. `known` are all protected files of earlier scans; `lasting` are those that it must find again."""

    def __init__(
        self,
        root_fd: int,
        protection: Protection,
        known: Mapping[int, ProtectedNode],
        lasting: Mapping[int, ProtectedNode],
    ) -> None:
        self._root_fd, self._protection, self._known, self._lasting = root_fd, protection, known, lasting
        self._earlier = known
        self._result = ProtectedNames()
        self._fd = -1
        self._waiting: list[tuple[str, str | None, str]] = []
        """Directories to list: prefix, prefix for matching rules (None: match no rules), rule of a parent directory."""
        self._found: set[int] = set()
        self._hard_linked: dict[int, ProtectedNode] = {}
        self._followed: set[str] = set()

    def run(self) -> ProtectedNames:
        """Scan the tree and return the result."""
        self._walk("", "")
        if self._hard_linked:
            for prefix in ("", ".git/"):
                self._walk_by_number(prefix, self._hard_linked)
        result = self._result
        result.missing = self._lasting.keys() - self._found
        if result.missing:  # otherwise `.git` is not scanned: it is large, and rules do not apply to its names
            self._walk_by_number(".git/", {number: self._lasting[number] for number in result.missing})
            result.missing -= self._found
        return result

    def _walk_by_number(self, prefix: str, wanted: Mapping[int, ProtectedNode]) -> None:
        """Scan a directory for inode numbers only."""
        self._known = wanted
        self._walk(prefix, _WITHOUT_RULES)

    def _walk(self, prefix: str, judged: str | None) -> None:
        self._waiting.append((prefix, judged, ""))
        while self._waiting:
            self._list(*self._waiting.pop())

    def _list(self, prefix: str, judged: str | None, above: str) -> None:
        try:
            self._fd = os.open(prefix or ".", _DIRECTORY, dir_fd=self._root_fd)
        except OSError as error:
            if error.errno not in _GONE and not self._is_of_other_user(prefix, error):
                self._note_unlisted(prefix.rstrip("/"), error, above)
            return
        try:
            with os.scandir(self._fd) as entries:
                for entry in entries:
                    self._consider(entry, prefix, judged, above)
        finally:
            os.close(self._fd)

    def _note_unlisted(self, path: str, error: OSError, above: str) -> None:
        if above:
            self._result.covered.append(path)
        elif error.errno == errno.ENAMETOOLONG:
            self._result.too_deep.append(path)
        else:
            self._result.unreadable.append(path)

    def _is_of_other_user(self, prefix: str, error: OSError) -> bool:
        """Return whether another user denies access to a directory, and so denies it to every command."""
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
            return path not in self._result.rules
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
        node = self._node(found, rule, entry.name, self._fd)
        if outermost:
            self._mark(path, found, node)
        self._note_file(found, node)
        if stat.S_ISLNK(found.st_mode):
            self._note_target(path, rule)

    def _node(self, found: os.stat_result, rule: str, name: str, dir_fd: int) -> ProtectedNode:
        """Return the facts of an entry; an unchanged file was born when the earlier scan said."""
        seen = self._earlier.get(found.st_ino)
        born = seen.born if seen is not None and seen.is_still(found) else 0
        return ProtectedNode(rule, born or _born(found, name, dir_fd), found.st_size, found.st_mtime_ns)

    def _mark(self, path: str, found: os.stat_result, node: ProtectedNode) -> None:
        self._result.rules[path] = node.rule
        if not self._protection.rule_for(path):
            self._result.unnamed[path] = node.rule
        if not stat.S_ISLNK(found.st_mode):  # for a link, the sandbox covers the target
            self._result.masks[path] = (found.st_dev, found.st_ino)
            self._result.lasting[found.st_ino] = node

    def _note_file(self, found: os.stat_result, node: ProtectedNode) -> None:
        self._found.add(found.st_ino)
        if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
            self._result.files[found.st_ino] = node
            if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                self._hard_linked[found.st_ino] = node

    def _note_target(self, path: str, rule: str) -> None:
        """Protect the target of a protected link, unless the target is a directory that contains the link."""
        try:
            fd = os.open(path, _TARGET, dir_fd=self._root_fd)
        except OSError:
            return  # the target does not exist, or tools cannot reach it either
        try:
            found, place = os.fstat(fd), place_of(fd, self._root_fd)
            if place is not None and f"{path}/".startswith(f"{place}/" if place else ""):
                return
            node = self._node(found, rule, "", fd)
            self._note_file(found, node)
            if place is None:  # outside the root, where a command may see it
                self._result.masks[path] = (found.st_dev, found.st_ino)
                return
            if self._is_covered(place):
                return
            self._mark(place, found, node)
            if stat.S_ISDIR(found.st_mode):
                self._waiting.append((f"{place}/", f"{place}/", rule))
        finally:
            os.close(fd)

    def _is_covered(self, place: str) -> bool:
        return any(above in self._result.rules for above in with_parents(place))

    def _follow(self, path: str, judged: str) -> None:
        """Scan the target of an ordinary link, because a rule may name a path that goes through the link."""
        if path in self._followed:
            return
        self._followed.add(path)
        try:
            fd = os.open(path, _TARGET | os.O_DIRECTORY, dir_fd=self._root_fd)
        except OSError:
            return  # the target is not a directory
        try:
            place = place_of(fd, self._root_fd)
        finally:
            os.close(fd)
        if place is not None:
            self._waiting.append((f"{place}/" if place else "", judged, ""))


def with_parents(place: str) -> list[str]:
    """Return a path and its parent directories, the outermost first."""
    parts = place.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _stat(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # deleted after it was listed
        return None


def _born(found: os.stat_result, name: str, dir_fd: int) -> int:
    """Return the creation time of a file; 0 if the system cannot tell it. An empty name means the handle itself."""
    created = getattr(found, "st_birthtime_ns", 0) or int(getattr(found, "st_birthtime", 0) * 1_000_000_000)
    statx = libc_function("statx")
    if created or statx is None:
        return created
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if statx(dir_fd, os.fsencode(name), _NO_FOLLOW | _EMPTY_PATH, _STATX_BTIME, answer):
        return 0
    mask, seconds, nanoseconds = binary.unpack_from(f"=I{_BTIME_AT - 4}xqI", answer.raw)
    return seconds * 1_000_000_000 + nanoseconds if mask & _STATX_BTIME else 0
