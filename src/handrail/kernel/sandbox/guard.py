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

from handrail.kernel.placeholder import MARK

GIT_READ_ONLY = ("hooks", "info", "modules")
GIT_FILES = ("config", "config.worktree")
# A file of this name sends git elsewhere for its configuration and hooks. "." is what its absence means.
GIT_REDIRECT, GIT_HERE = "commondir", b".\n"


@dataclass
class Guard:
    """Read-only mounts (and one writable: `.git` itself, which must not be swapped) beneath an open root."""

    root_fd: int
    writable: list[tuple[str, int]] = field(default_factory=list)
    read_only: list[tuple[str, int]] = field(default_factory=list)
    unguarded: list[str] = field(default_factory=list)
    """Names that are links: a mount would follow them."""
    _made: set[str] = field(default_factory=set)
    _ours: list[tuple[str, int]] = field(default_factory=list)

    def stand(self, names: tuple[str, ...]) -> None:
        """Raises OSError where a name cannot be looked at or occupied: then nothing may run."""
        if self._kind(".git") == "directory":
            self.writable.append((".git", self._open(".git")))
            for name in GIT_READ_ONLY:
                self._protect(f".git/{name}")
            self._protect(f".git/{GIT_REDIRECT}", content=GIT_HERE)
            for name in GIT_FILES:
                if self._kind(f".git/{name}") != "absent":
                    self._protect(f".git/{name}")
        elif self._kind(".git") == "file":
            self._protect(".git")
        for name in names:
            self._protect(name)

    def _protect(self, name: str, content: bytes | None = None) -> None:
        if not self._hold_parents(name):
            self.unguarded.append(name)
            return
        kind = self._kind(name)
        if kind == "absent":
            try:
                self._occupy(name, content)
            except FileNotFoundError:  # no parent: a command that wants the name must create a directory first
                self.unguarded.append(name)
                return
            kind = self._kind(name)
        if kind == "link":
            self.unguarded.append(name)
            return
        fd = self._open(name)
        self.read_only.append((name, fd))
        if name in self._made or self._is_marked(fd):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.root_fd)
            fcntl.flock(handle, fcntl.LOCK_SH)
            self._ours.append((name, handle))

    def _hold_parents(self, name: str) -> bool:
        """What is mounted upon cannot be renamed, but its parents could: mount them on themselves. False at a link."""
        parts = name.split("/")[:-1]
        for parent in ("/".join(parts[: count + 1]) for count in range(len(parts))):
            kind = self._kind(parent)
            if kind == "link":
                return False
            if kind == "directory" and all(parent != held for held, _ in (*self.writable, *self.read_only)):
                self.writable.append((parent, self._open(parent)))
        return True

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

    def _kind(self, name: str) -> str:
        try:
            mode = os.stat(name, dir_fd=self.root_fd, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        if stat.S_ISDIR(mode):
            return "directory"
        return "link" if stat.S_ISLNK(mode) else "file"

    def _open(self, name: str) -> int:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.root_fd)

    def release_handles(self) -> None:
        """The mounts stand: the handles that they were made from are no longer needed."""
        for _, fd in (*self.writable, *self.read_only):
            os.close(fd)
        self.writable, self.read_only = [], []

    def leave(self) -> None:
        """Take away what we put there, unless someone filled it or another sandbox still stands on it."""
        self.release_handles()
        self.unguarded = []
        for name, handle in self._ours:
            with contextlib.suppress(OSError):  # filled, replaced, in use or already gone: not ours to remove
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                same = os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=self.root_fd, follow_symlinks=False))
                if same and stat.S_ISDIR(os.fstat(handle).st_mode):
                    os.rmdir(name, dir_fd=self.root_fd)
                elif same and os.pread(handle, 64, 0) == GIT_HERE:
                    os.unlink(name, dir_fd=self.root_fd)
            os.close(handle)
        self._ours = []
