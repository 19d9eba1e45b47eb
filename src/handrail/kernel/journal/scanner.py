"""What changed in the workspace since it was last looked at, by size, times and inode; no contents are read.

Directories that hold what tools made (`DEFAULT_EXCLUSIONS`) or that ignore files leave out are not entered. Where the
system reports changes (`inotify.py`), only the directories in which something happened are listed again.
"""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from handrail.kernel.fs.ignore_rules import IgnoreFiles, Rules, ignored
from handrail.kernel.fs.placeholder import SPARE, is_placeholder
from handrail.kernel.journal.inotify import Watcher
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_files import DEFAULT_EXCLUSIONS
from handrail.ops.search.results import Named

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_RULES = {".gitignore", ".ignore", ".rgignore"}
_DEEPEST = 200
_TICK_NS = 20_000_000
"""Two changes within so short a time may bear the same date."""

Fingerprint = tuple[int, int, int, int, int]
"""Mode, inode, size, time of the content, time of the entry. Of a directory only the mode."""
Changed = dict[str, tuple[Fingerprint | None, Fingerprint | None]]
"""By path: what it was and what it is; None where nothing was there."""


@dataclass(slots=True)
class _Directory:
    mode: int
    rules: Rules
    names: dict[str, Fingerprint] = field(default_factory=dict)
    below: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    unsure: bool = False
    """Its files may change without a word: they have other names, or lie on another file system."""
    fresh: set[str] = field(default_factory=set)
    """Written so shortly before the look that a change right after it would not show."""

    @property
    def is_repository(self) -> bool:
        if ".git" in self.names or ".git" in self.left_out:
            return True
        return "HEAD" in self.names and all(name in self.below or name in self.left_out for name in ("objects", "refs"))


class Scan:
    def __init__(self, root_fd: int, limits: Limits, leave_out: frozenset[str] = frozenset()) -> None:
        self._fd, self._limits, self._leave_out = root_fd, limits, leave_out
        self._device = os.fstat(root_fd).st_dev
        self._watcher = Watcher(root_fd, limits.scan_directories)
        self._known: dict[str, _Directory] = {}
        self._ignore_files = IgnoreFiles(limits, Named(0))
        self._unsure: set[str] = set()
        """Those of the known that say so, and perhaps some that went."""
        self._trees: set[str] = set()
        """Those of the known that git takes for a repository, and perhaps some that went."""
        self._count = 0
        self.cut = False
        """There are more files than are watched."""

    @property
    def repositories(self) -> list[str]:
        """The directories that have a `.git`, or look like a git directory, as of the last look."""
        return sorted(self._trees.intersection(self._known))

    def changed(self) -> Changed:
        """What is different from the last time; at first, everything."""
        changed: Changed = {}
        self._ignore_files = IgnoreFiles(self._limits, Named(0))  # one that is not followed leaves more to be found
        touched = self._watcher.changed()
        if touched is None or not self._known or not self._look_into(touched, changed):
            for path, (before, now) in self._look_at_all().items():
                changed[path] = changed[path][0] if path in changed else before, now
        return changed

    def signs(self) -> Iterator[tuple[str, Fingerprint]]:
        for path, known in self._known.items():
            stem = f"{path}/" if path else ""
            for name, sign in known.names.items():
                yield stem + name, sign

    def close(self) -> None:
        self._watcher.close()

    def _look_at_all(self) -> Changed:
        before, self._known, self._count, self.cut = self._known, {}, 0, False
        self._unsure.clear()
        self._watcher.begin()
        self._enter(os.dup(self._fd), "", {})
        changed: Changed = {}
        for path in before.keys() | self._known.keys():
            if not _left_out(path, self._known) and not _left_out(path, before):
                _compare(path, before.get(path), self._known.get(path), changed)
        return changed

    def _look_into(self, touched: set[str], changed: Changed) -> bool:
        """Only the directories in which something happened; False where that is not enough."""
        for path in sorted(touched | self._unsure):
            before = self._known.get(path)
            if before is None:
                continue  # it went with one above it
            above = self._known.get(path.rpartition("/")[0]) if path else None
            fd = self._open(path)
            now = self._list(fd, path, above.rules if above else {}) if fd is not None else None
            if now is None or any(before.names.get(name) != now.names.get(name) for name in _RULES):
                return False
            self._count += len(now.names) - len(before.names)
            self._know(path, now)
            _compare(path, before, now, changed)
            self._go_below(path, before, now, changed)
        return True

    def _go_below(self, path: str, before: _Directory, now: _Directory, changed: Changed) -> None:
        stem = f"{path}/" if path else ""
        for name in before.below - now.below:
            for gone in [each for each in self._known if f"{each}/".startswith(f"{stem}{name}/")]:
                known = self._known.pop(gone)
                self._count -= len(known.names)
                if name not in now.left_out:
                    _compare(gone, known, None, changed)
        for name in now.below - before.below:
            fd = self._open(stem + name)
            if fd is not None:
                came = self._enter(fd, stem + name, now.rules)
                for each in came if name not in before.left_out else ():
                    _compare(each, None, self._known[each], changed)

    def _open(self, path: str) -> int | None:
        """A directory beneath the root, no link on the way."""
        fd = os.dup(self._fd)
        for part in path.split("/") if path else ():
            above = fd
            try:
                fd = os.open(part, _DIRECTORY, dir_fd=above)
            except OSError:
                return None
            finally:
                os.close(above)
        return fd

    def _enter(self, fd: int, path: str, rules: Rules) -> list[str]:
        """List a directory and all below it, depth first, one handle a level. The handle is closed."""
        came: list[str] = []
        levels = [(fd, path, iter(self._take(fd, path, rules, came)))]
        try:
            while levels:
                above, stem, names = levels[-1]
                name = next(names, None)
                if name is None:
                    os.close(levels.pop()[0])
                    continue
                if self._count >= self._limits.scan_files or len(levels) > _DEEPEST:
                    self.cut = True
                    continue
                try:
                    fd = os.open(name, _DIRECTORY, dir_fd=above)
                except OSError:
                    continue  # it went again, or is not to be read
                inside = f"{stem}/{name}" if stem else name
                levels.append((fd, inside, iter(self._take(fd, inside, self._known[stem].rules, came))))
        finally:
            for fd, _, _ in levels:
                os.close(fd)
        return came

    def _take(self, fd: int, path: str, rules: Rules, came: list[str]) -> set[str]:
        known = self._list(os.dup(fd), path, rules)
        if known is None:
            return set()
        self._know(path, known)
        self._count += len(known.names)
        came.append(path)
        return known.below

    def _know(self, path: str, directory: _Directory) -> None:
        self._known[path] = directory
        (self._unsure.add if directory.unsure else self._unsure.discard)(path)
        (self._trees.add if directory.is_repository else self._trees.discard)(path)

    def _list(self, fd: int, path: str, rules: Rules) -> _Directory | None:
        """One directory. The handle is closed."""
        self._watcher.add(fd, path)
        fresh_since = time.time_ns() - _TICK_NS
        try:
            with os.scandir(fd) as listed:
                entries = list(listed)
            here = os.fstat(fd)
            stem = f"{path}/" if path else ""
            own = self._ignore_files.rules_of(fd, {each.name for each in entries}, stem, rules)
            found = _Directory(here.st_mode, own)
            found.unsure = here.st_dev != self._device
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inside = stem + entry.name not in self._leave_out and _wanted(fd, stem, entry.name, found.rules)
                    (found.below if inside else found.left_out).add(entry.name)
                else:
                    _note(found, entry, fresh_since)
        except OSError:  # it was taken away, or is not to be read
            return None
        finally:
            os.close(fd)
        return found


def sign_of(about: os.stat_result) -> Fingerprint:
    return about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _wanted(dir_fd: int, stem: str, name: str, rules: Rules) -> bool:
    if name.startswith(SPARE) or name in DEFAULT_EXCLUSIONS or (name[0] == "." and is_placeholder(dir_fd, name)):
        return False
    return not (rules and ignored(stem + name, rules, is_directory=True))


def _note(found: _Directory, entry: "os.DirEntry[str]", fresh_since: int) -> None:
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(about.st_mode) and not stat.S_ISLNK(about.st_mode):
        return
    if entry.name.startswith(SPARE):
        return  # a commit of somebody else is on its way
    found.names[entry.name] = sign_of(about)
    found.unsure |= about.st_nlink > 1
    if about.st_ctime_ns >= fresh_since:
        found.fresh.add(entry.name)


def _left_out(path: str, known: dict[str, _Directory]) -> bool:
    """Whether it, or a directory above it, is there but not looked into."""
    parts = path.split("/") if path else []
    for count, part in enumerate(parts):
        above = known.get("/".join(parts[:count]))
        if above is None:
            return False
        if part in above.left_out:
            return True
    return False


def _compare(path: str, before: _Directory | None, now: _Directory | None, changed: Changed) -> None:
    if path and (before and before.mode) != (now and now.mode):
        _enter(changed, path, _as_sign(before), _as_sign(now))
    old, new = before.names if before else {}, now.names if now else {}
    if old == new and not (before and before.fresh):
        return
    stem = f"{path}/" if path else ""
    for name in old.keys() | new.keys():
        if old.get(name) != new.get(name) or (before and name in before.fresh):
            _enter(changed, stem + name, old.get(name), new.get(name))


def _enter(changed: Changed, path: str, old: Fingerprint | None, new: Fingerprint | None) -> None:
    """A directory that went and a file that took its name are one change."""
    had, has = changed.get(path, (None, None))
    changed[path] = had or old, has or new


def _as_sign(directory: _Directory | None) -> Fingerprint | None:
    return (directory.mode, 0, 0, 0, 0) if directory else None
