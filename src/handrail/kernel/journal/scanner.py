"""Finds the files that changed since the last scan, by size, times and inode; reads no contents.

Does not enter directories with generated files (`DEFAULT_EXCLUSIONS`), or large ones that ignore files exclude. If the
system reports changes (`inotify.py`), the scan lists only the directories in which something changed.
"""

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import field
from itertools import islice

from handrail.kernel.fs.ignore_files import IgnoreFiles, Rules, ignored
from handrail.kernel.fs.placeholder import SPARE, is_placeholder
from handrail.kernel.journal.ignored_directories import IgnoredDirectories
from handrail.kernel.journal.inotify import Watcher
from handrail.kernel.journal.skipped_directories import SkippedDirectories
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.results import Named

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IGNORE_NAMES = {".gitignore", ".ignore", ".rgignore"}
_KIND, _KEPT_KINDS = 0o170000, (stat.S_IFREG, stat.S_IFLNK)
_TICK_NS = 20_000_000
"""Two changes within this time may have the same timestamp."""

Fingerprint = tuple[int, int, int, int, int]
"""Mode, inode, size, mtime and ctime of a file; of a directory only the mode, and zeros."""
Changed = dict[str, tuple[Fingerprint | None, Fingerprint | None]]
"""Old and new fingerprint by path; None if there was no entry."""


@record
class _Directory:
    """Holds what the scan knows about one directory."""

    mode: int
    rules: Rules
    files: dict[str, Fingerprint] = field(default_factory=dict)
    """Files and links by name."""
    below: set[str] = field(default_factory=set)
    """The directories in it that the scan enters."""
    left_out: set[str] = field(default_factory=set)
    """The directories in it that the scan does not enter."""
    unsure: bool = False
    """True if files may change without an event: they have hard links, or are on another file system."""
    fresh: set[str] = field(default_factory=set)
    """Files that changed so shortly before the scan that a change right after it may not be visible."""

    @property
    def size(self) -> int:
        """Count it for the limit: one for itself, for each file and for each skipped directory."""
        return 1 + len(self.files) + len(self.left_out)

    @property
    def is_repository(self) -> bool:
        """True if git may take the directory for a repository: a git directory has a HEAD; its parts may lie apart."""
        return ".git" in self.files or ".git" in self.left_out or "HEAD" in self.files


class Scan:
    """Knows all files of a workspace as of the last scan, and finds changes."""

    def __init__(self, root_fd: int, limits: Limits, leave_out: frozenset[str] = frozenset()) -> None:
        self._fd, self._limits, self._leave_out = root_fd, limits, leave_out
        self._device = os.fstat(root_fd).st_dev
        self._watcher = Watcher(root_fd, limits.scan_directories)
        self._known: dict[str, _Directory] = {}
        self._ignore_files = IgnoreFiles(limits, Named(0))
        self._unsure: set[str] = set()
        """Directories that are `unsure`; some may not exist any more."""
        self._trees: set[str] = set()
        """Directories that git may take for a repository; some may not exist any more."""
        self._unlisted: set[str] = set()
        """Directories that cannot be listed; some may not exist any more."""
        self._skipped = SkippedDirectories(root_fd, limits.skipped_directories, limits.scan_depth)
        self._ignored = IgnoredDirectories(limits.scan_ignored_files)
        self._count = 0
        self.cut = False
        """True if there are more files or deeper directories than the limits allow."""

    @property
    def repositories(self) -> list[str]:
        """The directories that have a `.git` or may be a git directory, as of the last scan."""
        return sorted({*self._trees.intersection(self._known), *self._unlisted, *self._skipped.repositories})

    @property
    def unseen(self) -> list[str]:
        """The skipped directories that were not searched for repositories: too many directories in them are new."""
        return self._skipped.unseen

    @property
    def too_large(self) -> list[str]:
        """The directories that ignore files exclude and that are too large to be entered."""
        return self._ignored.too_large

    @property
    def has_ignored(self) -> bool:
        """True if the scan has entered directories that ignore files exclude."""
        return self._ignored.any

    def is_ignored(self, path: str) -> bool:
        """Return whether a file lies in a directory that ignore files exclude."""
        return self._ignored.hold(path)

    def changed(self) -> Changed:
        """Scan, and return all differences from the last scan; the first time, everything."""
        changed: Changed = {}
        # The scan does not name the ignore files that it cannot use: without them it only finds more.
        self._ignore_files = IgnoreFiles(self._limits, Named(0))
        touched = self._watcher.changed()
        if touched is None or not self._known or not self._scan_some(touched, changed):
            for path, (before, now) in self._scan_all().items():
                changed[path] = changed[path][0] if path in changed else before, now
        self._skipped.search(self._left_out_paths())
        return changed

    def fingerprints(self) -> Iterator[tuple[str, Fingerprint]]:
        """Yield path and fingerprint of every file, as of the last scan."""
        for path, known in self._known.items():
            stem = f"{path}/" if path else ""
            for name, fingerprint in known.files.items():
                yield stem + name, fingerprint

    def close(self) -> None:
        """Stop watching for changes."""
        self._watcher.close()
        self._skipped.close()

    def _left_out_paths(self) -> set[str]:
        """Return the directories that the scan does not enter, without git directories and Handrail's own state."""
        found = set[str]()
        for path, known in self._known.items():
            stem = f"{path}/" if path else ""
            found.update(stem + name for name in known.left_out if name != ".git")
        return found - self._leave_out

    def _scan_all(self) -> Changed:
        before, self._known, self._count, self.cut = self._known, {}, 0, False
        self._unsure.clear()
        self._unlisted.clear()
        self._watcher.begin()
        self._enter(os.dup(self._fd), "", {})
        changed: Changed = {}
        for path in before.keys() | self._known.keys():
            if not _left_out(path, self._known) and not _left_out(path, before):
                _compare(path, before.get(path), self._known.get(path), changed)
        return changed

    def _scan_some(self, touched: set[str], changed: Changed) -> bool:
        """Scan only the directories in which something changed.

        Returns False if one cannot be read, or its ignore rules changed: then a complete scan is necessary.
        """
        for path in sorted(touched | self._unsure):
            before = self._known.get(path)
            if before is None:
                continue  # removed together with a parent directory
            above = self._known.get(path.rpartition("/")[0]) if path else None
            fd = self._open(path)
            now = self._list(fd, path, above.rules if above else {}) if fd is not None else None
            if now is None or any(before.files.get(name) != now.files.get(name) for name in _IGNORE_NAMES):
                return False
            self._count += now.size - before.size
            self._know(path, now)
            _compare(path, before, now, changed)
            self._go_below(path, before, now, changed)
        return True

    def _go_below(self, path: str, before: _Directory, now: _Directory, changed: Changed) -> None:
        """Forget the directories that disappeared from a directory, and scan the new ones."""
        stem = f"{path}/" if path else ""
        for name in before.below - now.below:
            for gone in [each for each in self._known if f"{each}/".startswith(f"{stem}{name}/")]:
                known = self._known.pop(gone)
                self._count -= known.size
                if name not in now.left_out:
                    _compare(gone, known, None, changed)
        for name in now.below - before.below:
            fd = self._open(stem + name)
            if fd is None:
                self._unlisted.add(stem + name)
            else:
                came = self._enter(fd, stem + name, now.rules)
                for each in came if name not in before.left_out else ():
                    _compare(each, None, self._known[each], changed)

    def _open(self, path: str) -> int | None:
        """Open a directory in the root without following links; return None if that fails."""
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
        """Scan a directory and all in it, depth first, with one handle per level; return their paths. Closes `fd`."""
        came: list[str] = []
        levels = [(fd, path, iter(self._add(fd, path, rules, came)))]
        try:
            while levels:
                above, stem, names = levels[-1]
                name = next(names, None)
                if name is None:
                    os.close(levels.pop()[0])
                    continue
                if self._count >= self._limits.scan_files or len(levels) > self._limits.scan_depth:
                    self.cut = True
                    continue
                inside = f"{stem}/{name}" if stem else name
                try:
                    fd = os.open(name, _DIRECTORY, dir_fd=above)
                except OSError:  # deleted meanwhile, or not readable
                    self._unlisted.add(inside)
                    continue
                levels.append((fd, inside, iter(self._add(fd, inside, self._known[stem].rules, came))))
        finally:
            for fd, _, _ in levels:
                os.close(fd)
        return came

    def _add(self, fd: int, path: str, rules: Rules, came: list[str]) -> set[str]:
        """List a new directory and remember it; return the directories in it to enter."""
        known = self._list(os.dup(fd), path, rules)
        if known is None:
            return set()
        self._know(path, known)
        self._count += known.size
        came.append(path)
        return known.below

    def _know(self, path: str, directory: _Directory) -> None:
        self._known[path] = directory
        (self._unsure.add if directory.unsure else self._unsure.discard)(path)
        (self._trees.add if directory.is_repository else self._trees.discard)(path)

    def _list(self, fd: int, path: str, rules: Rules) -> _Directory | None:
        """List one directory; return None if that fails. Closes `fd`."""
        self._watcher.add(fd, path)
        fresh_since = time.time_ns() - _TICK_NS
        try:
            with os.scandir(fd) as listed:
                entries = list(islice(listed, self._limits.scan_files + 1))
            self.cut |= len(entries) > self._limits.scan_files
            here = os.fstat(fd)
            stem = f"{path}/" if path else ""
            own = self._ignore_files.rules_of(fd, {each.name for each in entries}, stem, rules)
            found = _Directory(here.st_mode, own)
            found.unsure = here.st_dev != self._device
            for name in _add_files(found, entries, fresh_since):
                inside = stem + name not in self._leave_out and self._enters(fd, stem, name, own)
                (found.below if inside else found.left_out).add(name)
        except OSError:  # deleted meanwhile, or not readable
            return None
        finally:
            os.close(fd)
        return found

    def _enters(self, dir_fd: int, stem: str, name: str, rules: Rules) -> bool:
        """Return whether the scan enters a directory."""
        if name.startswith(SPARE) or name in DEFAULT_EXCLUSIONS or (name[0] == "." and is_placeholder(dir_fd, name)):
            return False
        excluded = bool(rules) and ignored(stem + name, rules, is_directory=True)
        return not excluded or self._ignored.may_enter(dir_fd, stem + name, name)


def fingerprint_of(about: os.stat_result) -> Fingerprint:
    """Return the fingerprint of a file."""
    return about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _add_files(found: _Directory, entries: "list[os.DirEntry[str]]", fresh_since: int) -> list[str]:
    """Add the files and links among the entries of a directory, and return the names of the directories."""
    directories, files = list[str](), found.files
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            directories.append(entry.name)
            continue
        try:
            about = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        mode, name = about.st_mode, entry.name
        if mode & _KIND not in _KEPT_KINDS or name.startswith(SPARE):
            continue  # a device or a socket, or a temporary file of a commit by another process
        files[name] = mode, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
        if about.st_nlink > 1:
            found.unsure = True
        if about.st_ctime_ns >= fresh_since:
            found.fresh.add(name)
    return directories


def _left_out(path: str, known: dict[str, _Directory]) -> bool:
    """Return whether a path, or a parent directory of it, exists but is not entered."""
    parts = path.split("/") if path else []
    for count, part in enumerate(parts):
        above = known.get("/".join(parts[:count]))
        if above is None:
            return False
        if part in above.left_out:
            return True
    return False


def _compare(path: str, before: _Directory | None, now: _Directory | None, changed: Changed) -> None:
    """Add the differences between two states of a directory to `changed`."""
    if path and (before and before.mode) != (now and now.mode):
        _add_change(changed, path, _fingerprint_of_directory(before), _fingerprint_of_directory(now))
    old, new = before.files if before else {}, now.files if now else {}
    if old == new and not (before and before.fresh):
        return
    stem = f"{path}/" if path else ""
    if not old:  # the first scan: everything is new
        for name, fingerprint in new.items():
            _add_change(changed, stem + name, None, fingerprint)
        return
    for name in old.keys() | new.keys():
        if old.get(name) != new.get(name) or (before and name in before.fresh):
            _add_change(changed, stem + name, old.get(name), new.get(name))


def _add_change(changed: Changed, path: str, old: Fingerprint | None, new: Fingerprint | None) -> None:
    """Add a change. If a file replaced a directory of the same name, both are one change."""
    if path in changed:
        known_old, known_new = changed[path]
        old, new = known_old or old, known_new or new
    changed[path] = old, new


def _fingerprint_of_directory(directory: _Directory | None) -> Fingerprint | None:
    return (directory.mode, 0, 0, 0, 0) if directory else None
