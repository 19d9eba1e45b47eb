"""Writes the intent of a commit before the commit changes any file, so that recovery can roll it back or finish it.

Each process has one intent file per workspace and holds a lock on it until the process ends. If the lock is free, the
process was killed, and the file says what recovery must do. During a commit the file only grows, and its last complete
line counts: recovery ignores a line that a kill or a full disk cut short.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from operator import attrgetter
from typing import Any

from handrail.kernel.fs.placeholder import SPARE
from handrail.kernel.fs.syscalls import pwrite_all
from handrail.kernel.host.state_dir import make_private
from handrail.model.record import record

_DONE, _IDLE = b"done", b"idle"
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_TICK_NS = 50_000_000
"""Two changes of a directory within this time may have the same timestamp."""
_LARGEST_LOG = 1 << 16
"""A new commit empties a file that is larger."""


@record
class Step:
    """Holds one name that a commit changes."""

    directory: str
    name: str
    temp: str
    """The temporary name of the new file."""
    old: str
    """The second name of the old file."""
    creates: bool = False
    removes: bool = False
    identity: list[int] | None = None
    """The mark of the new file, once that exists."""
    swaps_directory: bool = False
    """True if a whole directory replaces a file or link, or the reverse."""
    found: list[int] | None = None
    """The mark of the old file, if there was one."""


_facts_of = attrgetter(*Step.__annotations__)


def file_mark(found: os.stat_result) -> list[int]:
    """Return a mark that identifies a file across mounts and renames."""
    return [found.st_ino, found.st_size, found.st_mtime_ns]


@record
class Intent:
    """Holds what one commit is about to do, and writes it to the intent file."""

    fd: int
    root: list[int]
    steps: list[Step] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Directories that the commit creates, outermost first."""
    done: bool = False
    created: set[str] = field(default_factory=set)
    size: int = 0
    """The offset of the next line: the end of the last complete one."""
    gone: list[str] = field(default_factory=list)
    """Directories that the commit removes, innermost first."""
    line: str = ""
    """The complete line for the journal."""
    begun: bool = False
    """True if a rollback has begun: the files that identify the directory may already be removed."""
    foreign: bool = False
    """True if the intent is about another directory than the current root."""
    pid: int = 0
    """The process that makes the commit."""

    @classmethod
    def of(cls, facts: dict[str, Any], **state: Any) -> "Intent":
        """Return the intent that `facts` describe. Raises KeyError, TypeError or ValueError if they are damaged."""
        (device, inode), steps = facts["root"], [Step(*step) for step in facts["steps"]]
        known = {name: facts[name] for name in ("made", "gone", "line")}
        return cls(root=[device, inode], steps=steps, **known, **{"fd": -1, **state})

    def facts(self) -> dict[str, Any]:
        """Return what the intent file and the log keep of a commit."""
        steps = [_facts_of(step) for step in self.steps]
        return {"root": self.root, "steps": steps, "made": self.made, "gone": self.gone, "line": self.line}

    def save(self, *, sync: bool) -> None:
        """Append the current state to the intent file."""
        self._append(_to_json(self.facts() | {"begun": self.begun}).encode())
        if sync:
            os.fsync(self.fd)

    def mark_done(self, *, sync: bool) -> None:
        """Append that all files are published; from now on recovery finishes the commit instead of rolling it back."""
        self._append(_DONE)
        self.done = True
        if sync:
            try:
                os.fsync(self.fd)
            except OSError:
                self.save(sync=False)  # not done after all: a commit that may not be on the disk is rolled back
                self.done = False
                raise

    def end(self) -> None:
        """Append that the commit is finished and recovery has nothing to do."""
        try:
            self._append(_IDLE)
        except OSError:
            os.ftruncate(self.fd, 0)  # works on a full disk, too
            self.size = 0

    def _append(self, line: bytes) -> None:
        pwrite_all(self.fd, line + b"\n", self.size)
        self.size += len(line) + 1


class IntentLog:
    """Manages the intent file of this process. Use it only under the lock of the workspace."""

    def __init__(self, pending: str) -> None:
        self._pending, self._fd, self._count = pending, -1, 0
        self.token, self._path = "", ""
        self._last: Intent | None = None
        self._pid = 0
        self._alone = 0
        """The time of the directory when it certainly held the file of this process only; 0 if that was never so."""

    def begin(self, root: tuple[int, int]) -> Intent:
        """Return the intent of a new commit; create the intent file if this process has none."""
        if not self._holds():
            self._pid = os.getpid()
            self.token, self._count = os.urandom(6).hex(), 0
            self._path = os.path.join(self._pending, self.token)
            make_private(self._pending)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._last = None
        self._count += 1
        size = self._last.size if self._last else 0
        if size > _LARGEST_LOG:
            os.ftruncate(self._fd, 0)
            size = 0
        self._last = Intent(self._fd, [*root], size=size, pid=self._pid)
        return self._last

    def _holds(self) -> bool:
        """Return whether this process has an intent file. A forked child closes the one that it inherits."""
        if self._fd >= 0 and self._pid != os.getpid():
            self.leave()
        return self._fd >= 0

    def spare_names(self, number: int) -> tuple[str, str]:
        """Return a temporary name for a new file and a second name for an old file; no other commit uses them."""
        stem = f"{SPARE}{self.token}-{self._count}-{number}"
        return f"{stem}.new", f"{stem}.old"

    def leave(self) -> None:
        """Abandon an intent that could not be ended: recovery treats it like the intent of a killed process."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        """Remove the intent file of this process."""
        if self._holds():
            self.leave()
            _remove(self._path)

    def abandoned(self) -> Iterator[Intent]:
        """Yield the unfinished intents of killed processes, and remove the file of each after the caller handled it.

        The file of an intent that the caller marks as foreign stays, because its directory may come back.
        """
        own = self.token if self._holds() else ""
        if not os.path.isdir(self._pending):
            return  # no process has begun a commit yet
        changed, now = os.stat(self._pending).st_mtime_ns, time.time_ns()
        if own and changed == self._alone:
            return  # no process has made an intent file since
        names = sorted(os.listdir(self._pending))
        self._alone = changed if names == [own] and changed + _TICK_NS < now else 0
        for name in names:
            if name == own:
                continue
            path = os.path.join(self._pending, name)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # its process has just closed it
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                intent = _read(fd)
                if intent is not None:
                    yield intent
                if intent is None or not intent.foreign:
                    _remove(path)
            except BlockingIOError:
                continue  # its process is alive
            finally:
                os.close(fd)


def _remove(path: str) -> None:
    """Remove a file that is not needed any more. If the disk fails, a later recovery removes it."""
    with suppress(OSError):
        os.unlink(path)


def _read(fd: int) -> Intent | None:
    """Return the unfinished intent in a file; None if there is no complete one."""
    *lines, cut = os.pread(fd, size := os.fstat(fd).st_size, 0).split(b"\n")
    done = lines[-1:] == [_DONE]
    if done:
        lines.pop()
    if not lines or lines[-1] == _IDLE:
        return None
    try:
        facts = json.loads(lines[-1])
        begun = "begun" in facts and facts["begun"]
        return Intent.of(facts, fd=fd, done=done, size=size - len(cut), begun=begun)
    except (ValueError, TypeError, KeyError):
        return None  # the disk damaged the file: nothing in it is reliable
