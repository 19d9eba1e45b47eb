"""Names in the workspace that a command must not plant: made hard to create by occupying them.

A mount needs something to stand on, and what bubblewrap would create there stays in the person's workspace.
So for a name that does not exist we put an empty directory (which `git status` hides), lock it as long as a
sandbox stands on it, and take it away at the end. A mark on it tells ours from the person's, so that what a
killed process left behind is taken away the next time.
"""

import contextlib
import errno
import fcntl
import os
import stat
from dataclasses import dataclass, field

from handrail.kernel.fs.placeholder import MARK
from handrail.kernel.git.repositories import GitDirectory, find, kind_at, names_in
from handrail.model.limits import Limits
from handrail.ops.git_names import OCCUPIED, OCCUPIED_LINKED, may_be_written

_ALTERNATES = ("objects/info/alternates", "objects/info/http-alternates")


@dataclass
class OccupiedNames:
    """Mounts beneath an open root: read-only ones, and writable ones for directories that must not be swapped."""

    root_fd: int
    root: str = "/"
    limits: Limits = field(default_factory=Limits)
    mounts: dict[str, tuple[int, bool]] = field(default_factory=dict)
    """By name: the handle to mount there, and whether it may be written."""
    unguarded: list[str] = field(default_factory=list)
    """Names that are links: a mount would follow them."""
    _stood: dict[str, tuple[int, int]] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _ours: list[tuple[str, int, bytes | None]] = field(default_factory=list)

    def stand(self, names: tuple[str, ...]) -> None:
        """Raises OSError where a name cannot be looked at or occupied: then nothing may run."""
        found = find(self.root_fd, self.root, self.limits)
        for directory in found.directories:
            self._guard_git(directory)
        for name in dict.fromkeys((*found.files, *names)):
            self._protect(name)
        self._stood = {name: _identity(os.fstat(fd)) for name, (fd, _) in self.mounts.items()}

    def intact(self) -> bool:
        """Whether each name is still what was mounted: one that was replaced outside has lost its mount inside."""
        for name, identity in self._stood.items():
            try:
                found = os.stat(name, dir_fd=self.root_fd, follow_symlinks=False)
            except OSError:
                return False
            if _identity(found) != identity:
                return False
        return True

    def ordered(self) -> list[tuple[str, int, bool]]:
        """The mounts, each behind those of the directories that it lies in: a later one covers an earlier one."""
        return [(name, *self.mounts[name]) for name in sorted(self.mounts, key=lambda name: name.split("/"))]

    def _guard_git(self, directory: GitDirectory) -> None:
        """All but what ordinary git work writes is read-only; names that git would obey are occupied."""
        path = directory.path
        if not self._hold(path) or not self._hold_parents(path):
            self.unguarded.append(path)
            return
        occupied = OCCUPIED_LINKED if directory.linked else OCCUPIED
        for name in names_in(self.root_fd, path):
            is_directory = kind_at(self.root_fd, f"{path}/{name}") == "directory"
            if name not in occupied and not may_be_written(name, is_directory=is_directory):
                self._protect(f"{path}/{name}", there=True)
        for name, content in occupied.items():
            self._protect(f"{path}/{name}", content=content)
        for name in _ALTERNATES:
            self._protect(f"{path}/{name}", there=True)

    def _protect(self, name: str, content: bytes | None = None, *, there: bool = False) -> None:
        """Mount a name read-only. If it is absent, occupy it first; `there`: then leave it alone."""
        kind = kind_at(self.root_fd, name)
        if there and kind == "absent":
            return
        if not self._hold_parents(name):
            self.unguarded.append(name)
            return
        if kind == "absent":
            try:
                self._occupy(name, content)
            except FileNotFoundError:  # no parent: a command that wants the name must create a directory first
                self.unguarded.append(name)
                return
            kind = kind_at(self.root_fd, name)
        if kind == "link":
            self.unguarded.append(name)
            return
        try:
            fd = self._open(name)
        except FileNotFoundError:
            if there:  # it went again
                return
            raise
        if name in self.mounts:
            os.close(self.mounts[name][0])
        self.mounts[name] = (fd, False)
        if name in self._made or self._is_marked(fd):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.root_fd)
            fcntl.flock(handle, fcntl.LOCK_SH)
            self._ours.append((name, handle, content))

    def _hold_parents(self, name: str) -> bool:
        """What is mounted upon cannot be renamed, but its parents could: mount them on themselves. False at a link."""
        parts = name.split("/")[:-1]
        return all(self._hold("/".join(parts[: count + 1])) for count in range(len(parts)))

    def _hold(self, directory: str) -> bool:
        """Mount a directory on itself. False at a link."""
        kind = kind_at(self.root_fd, directory)
        if kind == "directory" and directory not in self.mounts:
            self.mounts[directory] = (self._open(directory), True)
        return kind != "link"

    def _occupy(self, name: str, content: bytes | None) -> None:
        with contextlib.suppress(FileExistsError):  # another sandbox was as fast
            if content is None:
                os.mkdir(name, 0o755, dir_fd=self.root_fd)
                handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.root_fd)
            else:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                handle = os.open(name, flags, 0o644, dir_fd=self.root_fd)
                os.write(handle, content)
            try:
                self._own(handle)
            finally:
                os.close(handle)
            self._made.add(name)

    def _own(self, handle: int) -> None:
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
        """No link is followed on the way: a parent may have been exchanged for one since it was looked at."""
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        *parents, last = name.split("/")
        handle = os.dup(self.root_fd)
        try:
            for parent in parents:
                below = os.open(parent, flags | os.O_DIRECTORY, dir_fd=handle)
                os.close(handle)
                handle = below
            return os.open(last, flags, dir_fd=handle)
        finally:
            os.close(handle)

    def release_handles(self) -> None:
        """The mounts stand: the handles that they were made from are no longer needed."""
        for fd, _ in self.mounts.values():
            os.close(fd)
        self.mounts = {}

    def leave(self) -> None:
        """Take away what we put there, unless someone filled it or another sandbox still stands on it."""
        self.release_handles()
        self.unguarded, self._stood = [], {}
        for name, handle, content in self._ours:
            with contextlib.suppress(OSError):  # filled, replaced, in use or already gone: not ours to remove
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                same = os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=self.root_fd, follow_symlinks=False))
                if same and stat.S_ISDIR(os.fstat(handle).st_mode):
                    os.rmdir(name, dir_fd=self.root_fd)
                elif same and os.pread(handle, 64, 0) == content:
                    os.unlink(name, dir_fd=self.root_fd)
            os.close(handle)
        self._ours = []


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
