"""The record of intent: written before a commit touches anything, so that the next open can put things right.

Each process keeps one such file per workspace and holds a lock on it while it lives. A file whose lock is free belongs
to a process that was killed; what it says then is what is left to do. The file only grows while a commit is open,
and the last whole line counts: a line cut short by a kill or a full disk is as if it had not been written.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from operator import attrgetter

from handrail.kernel.fs.placeholder import SPARE
from handrail.model.record import record

_DONE, _IDLE = b"done", b"idle"
_ROOMY = 1 << 16


@record
class Step:
    """One name that a commit changes. `identity` is what the new file is known by once it exists."""

    directory: str
    name: str
    temp: str
    old: str
    creates: bool = False
    removes: bool = False
    identity: list[int] | None = None
    turns: bool = False
    """A directory, whole, stands on one side."""
    found: list[int] | None = None
    """What the old file is known by, where there was one."""


_facts_of = attrgetter(*Step.__annotations__)


def file_mark(found: os.stat_result) -> list[int]:
    """Return what identifies a file wherever it is mounted and whatever its name is."""
    return [found.st_ino, found.st_size, found.st_mtime_ns]


@record
class Intent:
    fd: int
    root: list[int]
    steps: list[Step] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Directories that the commit creates, outermost first."""
    done: bool = False
    created: set[str] = field(default_factory=set)
    size: int = 0
    """Where the next line goes: behind the last whole one."""
    gone: list[str] = field(default_factory=list)
    """Directories that the commit takes away, innermost first."""
    line: str = ""
    """The finished line for the journal."""
    begun: bool = False
    """Rolling back has begun: what the directory is known by may be gone already."""
    foreign: bool = False
    """It is about another directory than the one that is there now."""
    pid: int = 0
    """The process whose commit it is."""

    def save(self, *, sync: bool) -> None:
        steps = [_facts_of(step) for step in self.steps]
        facts = {"root": self.root, "steps": steps, "made": self.made, "gone": self.gone, "line": self.line}
        self._append(json.dumps(facts | {"begun": self.begun}).encode())
        if sync:
            os.fsync(self.fd)

    def mark_done(self, *, sync: bool) -> None:
        self._append(_DONE)
        self.done = True
        if sync:
            try:
                os.fsync(self.fd)
            except OSError:
                self.save(sync=False)  # open again: what is not surely done is rolled back
                self.done = False
                raise

    def end(self) -> None:
        """Everything is in its place: forget it."""
        try:
            self._append(_IDLE)
        except OSError:
            os.ftruncate(self.fd, 0)  # on a full disk there is room for this
            self.size = 0

    def _append(self, line: bytes) -> None:
        at, view = self.size, memoryview(line + b"\n")
        while view:
            written = os.pwrite(self.fd, view, at)
            at, view = at + written, view[written:]
        self.size = at


class IntentLog:
    """The file of intent of our process. To be used under the workspace's lock."""

    def __init__(self, pending: str) -> None:
        self._pending, self._fd, self._count = pending, -1, 0
        self.token, self._path = "", ""
        self._last: Intent | None = None
        self._pid = 0

    def begin(self, root: tuple[int, int]) -> Intent:
        if not self._holds():
            self._pid = os.getpid()
            self.token, self._count = os.urandom(6).hex(), 0
            self._path = os.path.join(self._pending, self.token)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._last = None
        self._count += 1
        size = self._last.size if self._last else 0
        if size > _ROOMY:
            os.ftruncate(self._fd, 0)
            size = 0
        self._last = Intent(self._fd, [*root], size=size, pid=self._pid)
        return self._last

    def _holds(self) -> bool:
        """Whether there is a file of our own. What a forked child inherits stays its parent's."""
        if self._fd >= 0 and self._pid != os.getpid():
            self.leave()
        return self._fd >= 0

    def spare_names(self, number: int) -> tuple[str, str]:
        """Names for a new file on its way in and an old one on its way out, used by no other commit."""
        stem = f"{SPARE}{self.token}-{self._count}-{number}"
        return f"{stem}.new", f"{stem}.old"

    def leave(self) -> None:
        """Let go of a record that could not be ended: it is as if its process had been killed."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        if self._holds():
            self.leave()
            _remove(self._path)

    def abandoned(self) -> Iterator[Intent]:
        """The open records of processes that were killed; their files go when the caller has dealt with them.

        What the caller finds to be foreign stays, for the day on which its directory is back.
        """
        own = self.token if self._holds() else ""
        for name in sorted(os.listdir(self._pending)):
            if name == own:
                continue
            path = os.path.join(self._pending, name)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # its owner has just closed
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                intent = _read(fd)
                if intent is not None:
                    yield intent
                if intent is None or not intent.foreign:
                    _remove(path)
            except BlockingIOError:
                continue  # its owner lives
            finally:
                os.close(fd)


def _remove(path: str) -> None:
    """Take away a file that has nothing left to say. One that a failing disk keeps is removed by a later open."""
    with suppress(OSError):
        os.unlink(path)


def _read(fd: int) -> Intent | None:
    """What a file says is left to do; None where its owner was between two commits, or had only begun to write."""
    *lines, cut = os.pread(fd, size := os.fstat(fd).st_size, 0).split(b"\n")
    done = lines[-1:] == [_DONE]
    if done:
        lines.pop()
    if not lines or lines[-1] == _IDLE:
        return None
    try:
        facts = json.loads(lines[-1])
        steps = [Step(*step) for step in facts["steps"]]
        known = {name: facts[name] for name in ("made", "gone", "line")}
        device, inode = facts["root"]
        begun = facts.get("begun", False)
        return Intent(fd, [device, inode], steps=steps, done=done, size=size - len(cut), begun=begun, **known)
    except (ValueError, TypeError, KeyError):
        return None  # spoilt by the disk: nothing in it can be relied on
