"""Occupies names in the workspace that commands must not create, so that bubblewrap can mount over them.

A mount needs a file or directory to mount on, and one that bubblewrap creates would stay in the user's workspace.
So for a name that does not exist Handrail makes a placeholder, usually an empty directory (which `git status` hides),
locks it while a sandbox uses it, and removes it at the end. A mark tells placeholders from the user's own files, so the
next session removes what a killed process left behind.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import field

from handrail.kernel.fs.placeholder import MARK
from handrail.kernel.fs.small_files import FILE, open_file
from handrail.kernel.git.repositories import GitDirectory, find, kind_at, names_in
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.git_names import OCCUPIED, OCCUPIED_LINKED, may_be_written

_SPECIAL, _ESCAPED = r"([\\*?\[ ])", r"\\\1"
"""Characters with a meaning in an ignore file."""
_ALTERNATES = ("objects/info/alternates", "objects/info/http-alternates")


@record
class OccupiedNames:
    """Makes mounts below an open root: read-only ones, and writable ones for directories that must not be renamed."""

    root_fd: int
    root: str = "/"
    limits: Limits = field(default_factory=Limits)
    mounts: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """By name: the handle to mount there, and whether commands may write it."""
    unguarded: list[str] = field(default_factory=list)
    """Names that cannot be guarded: a mount would follow a link, or the parent does not exist."""
    _mounted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The identity of what was mounted at each name."""
    _read_only: set[str] = field(default_factory=set)
    _made: set[str] = field(default_factory=set)
    _placeholders: list[tuple[str, int, bytes | None]] = field(default_factory=list)

    def occupy(self, names: tuple[str, ...]) -> None:
        """Prepare the mounts for these names and all git directories. Raises OSError if a name cannot be occupied."""
        found = find(self.root_fd, self.root, self.limits)
        for directory in found.directories:
            self._guard_git(directory)
        for name in dict.fromkeys((*found.files, *names)):
            self._protect(name)
        self._mounted = {name: _identity(os.fstat(fd)) for name, (fd, _) in self.mounts.items()}
        self._read_only = {name for name, (_, writable) in self.mounts.items() if not writable}

    @property
    def ignore_rules(self) -> str:
        """An ignore file for git that names the empty directories among the placeholders."""
        names = [name for name, _, content in self._placeholders if content is None and ".git" not in name.split("/")]
        return "".join(f"/{re.sub(_SPECIAL, _ESCAPED, name)}/\n" for name in dict.fromkeys(names))

    def intact(self) -> bool:
        """Return False if a name was replaced since: then its mount inside the sandbox is lost."""
        for name, identity in self._mounted.items():
            try:
                found = os.stat(name, dir_fd=self.root_fd, follow_symlinks=False)
            except OSError:
                return False
            if _identity(found) != identity:
                return False
        return True

    def guards(self, name: str) -> bool:
        """Return whether commands cannot change a name: the nearest mount at it or above it is read-only."""
        parts = name.split("/")
        above = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        nearest = next((each for each in above if each in self._mounted), None)
        return nearest in self._read_only

    def ordered(self) -> list[tuple[str, int, bool]]:
        """Return the mounts, outer directories first: a later mount covers an earlier one."""
        return [(name, *self.mounts[name]) for name in sorted(self.mounts, key=lambda name: name.split("/"))]

    def _guard_git(self, directory: GitDirectory) -> None:
        """Mount read-only what ordinary git commands do not write, and occupy the names of git's configuration."""
        path = directory.path
        if not self._hold(path) or not self._hold_parents(path):
            self.unguarded.append(path)
            return
        occupied = OCCUPIED_LINKED if directory.linked else OCCUPIED
        for name in names_in(self.root_fd, path):
            is_directory = kind_at(self.root_fd, f"{path}/{name}") == "directory"
            if name not in occupied and not may_be_written(name, is_directory=is_directory):
                self._protect(f"{path}/{name}", only_existing=True)
        for name, content in occupied.items():
            self._protect(f"{path}/{name}", content=content)
        for name in _ALTERNATES:
            self._protect(f"{path}/{name}", only_existing=True)

    def _protect(self, name: str, content: bytes | None = None, *, only_existing: bool = False) -> None:
        """Mount a name read-only. Make a placeholder if it does not exist, but not with `only_existing`."""
        kind = kind_at(self.root_fd, name)
        if only_existing and kind == "absent":
            return
        if not self._hold_parents(name):
            self.unguarded.append(name)
            return
        if kind == "absent":
            try:
                self._make_placeholder(name, content)
            except FileNotFoundError:  # the parent does not exist: a command would have to create it first
                self.unguarded.append(name)
                return
            kind = kind_at(self.root_fd, name)
        if kind == "link":
            self.unguarded.append(name)
            return
        try:
            fd = self._open(name)
        except FileNotFoundError:
            if only_existing:  # it was removed meanwhile
                return
            raise
        if name in self.mounts:
            os.close(self.mounts[name][0])
        self.mounts[name] = (fd, False)
        if name in self._made or self._is_marked(fd):
            self._lock_placeholder(name, fd, content)

    def _lock_placeholder(self, name: str, fd: int, content: bytes | None) -> None:
        """Lock a placeholder, so that no other sandbox removes it, and remember to remove it."""
        handle = os.open(f"/proc/self/fd/{fd}", FILE & ~os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # a process of another session locked it, or another sandbox removes it: leave it
            os.close(handle)
        else:
            self._placeholders.append((name, handle, content))

    def _hold_parents(self, name: str) -> bool:
        """Mount every parent on itself, so that no command can rename it. Return False if one is a link."""
        parts = name.split("/")[:-1]
        return all(self._hold("/".join(parts[: count + 1])) for count in range(len(parts)))

    def _hold(self, directory: str) -> bool:
        """Mount a directory on itself, so that no command can rename it. Return False if it is a link."""
        kind = kind_at(self.root_fd, directory)
        if kind == "directory" and directory not in self.mounts:
            self.mounts[directory] = (self._open(directory), True)
        return kind != "link"

    def _make_placeholder(self, name: str, content: bytes | None) -> None:
        """Make an empty directory, or a file if `content` is given."""
        # If the name exists now, another sandbox made it at the same time.
        with contextlib.suppress(FileExistsError), self._parent_of(name) as (parent, last):
            if content is None:
                os.mkdir(last, 0o755, dir_fd=parent)
                handle = os.open(last, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            else:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                handle = os.open(last, flags, 0o644, dir_fd=parent)
                os.write(handle, content)
            try:
                self._mark(handle)
            finally:
                os.close(handle)
            self._made.add(name)

    @contextlib.contextmanager
    def _parent_of(self, name: str) -> Iterator[tuple[int, str]]:
        """Open the parent of a name without following a link; yield its handle and the last part of the name."""
        above, _, last = name.rpartition("/")
        handle = self._open(above) if above else os.dup(self.root_fd)
        try:
            yield handle, last
        finally:
            os.close(handle)

    def _mark(self, handle: int) -> None:
        """Mark a placeholder, if the file system can, and give it to the workspace's owner."""
        try:
            os.setxattr(handle, MARK, b"1")
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM):
                raise
        parent = os.fstat(self.root_fd)
        if os.geteuid() == 0 and parent.st_uid != 0:
            os.chown(handle, parent.st_uid, parent.st_gid)

    def _is_marked(self, fd: int) -> bool:
        try:
            return os.getxattr(f"/proc/self/fd/{fd}", MARK) == b"1"
        except OSError:
            return False

    def _open(self, name: str) -> int:
        """Open a path without following a link: a parent may have been replaced by a link meanwhile."""
        return open_file(self.root_fd, name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def release_handles(self) -> None:
        """Close the handles, which are not needed once the sandbox has mounted them."""
        for fd, _ in self.mounts.values():
            os.close(fd)
        self.mounts = {}

    def remove(self) -> None:
        """Remove the placeholders, but none that has content by now or that another sandbox still uses."""
        self.release_handles()
        self.unguarded, self._mounted = [], {}
        for name, handle, content in self._placeholders:
            # It has content, was replaced, is in use or is gone: leave it.
            with contextlib.suppress(OSError), self._parent_of(name) as (parent, last):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                same = os.path.samestat(os.fstat(handle), os.stat(last, dir_fd=parent, follow_symlinks=False))
                if same and stat.S_ISDIR(os.fstat(handle).st_mode):
                    os.rmdir(last, dir_fd=parent)
                elif same and os.pread(handle, 64, 0) == content:
                    os.unlink(last, dir_fd=parent)
            os.close(handle)
        self._placeholders = []


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
