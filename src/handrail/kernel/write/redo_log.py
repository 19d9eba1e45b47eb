"""Keeps the log of `durability = "log"`: a commit waits for one sync of this log, not for its files and directories.

A record of the log holds the intent of a commit and all its new contents. It is on the disk before the commit publishes
anything. A checkpoint syncs the file system of the workspace and empties the log. If the power fails before that, the
next open redoes the commits of the log (`log_recovery.py`). The kill of a process loses nothing, so the log does not
matter then: it says in which boot of the system it was written.

The log begins with a frame that names the boot and the root. Each frame begins with a number that is new after every
checkpoint, so what an earlier log left behind is never taken for a record. Use the log only under the lock of the
workspace.
"""

import json
import os
import stat
import struct
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal, NamedTuple

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.syscalls import can_sync_whole, pwrite_all, sync_whole
from handrail.kernel.fs.trees import in_memory
from handrail.kernel.write.planned_change import PlannedChange
from handrail.model.files import Put, Remove

_FRAME = struct.Struct("<8sQI")
"""The number of the log, the size of the content, and its checksum."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class LoggedFile(NamedTuple):
    """Holds what a commit made of one file."""

    target: str
    mode: int
    data: bytes | None
    """None if the commit removed the file."""


class LoggedCommit(NamedTuple):
    """Holds one record of the log."""

    intent: dict[str, Any]
    time_ns: int
    files: list[LoggedFile]


class _Frame(NamedTuple):
    number: bytes
    content: bytes
    end: int


LogState = Literal["empty", "current", "moved", "lost", "foreign"]
"""What the records of a log are about: the root, in this boot or before a loss of power (`lost`); or a directory that
was at its path earlier in this boot (`moved`) or before a loss of power (`foreign`), and may come back."""


@cache
def boot_id() -> str:
    """Return what identifies this boot of the system; empty if the system cannot tell."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class RedoLog:
    """Manages the log of one workspace."""

    def __init__(self, path: str, workspace: FsBoundary, most: int) -> None:
        self._path, self._workspace, self._most = path, workspace, most
        self._number, self._first, self._end = b"", 0, 0
        self._timer: threading.Timer | None = None
        self._timer_pid = 0

    def state(self) -> LogState:
        """Say what the log is about."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return "empty"
        try:
            about = self._find_end(fd)
        finally:
            os.close(fd)
        if about is None or self._end == self._first:
            return "empty"
        ours = about["root"] == self._workspace.identity[1]
        if about["boot"] == boot_id():
            return "current" if ours else "moved"
        return "lost" if ours else "foreign"

    def takes(self, works: Sequence[PlannedChange]) -> bool:
        """Return whether the log can hold a commit: of files in the workspace, on one file system, not too large."""
        if self._workspace.is_view or not boot_id() or not can_sync_whole() or self.state() not in ("empty", "current"):
            return False
        return all(map(self._holds, works)) and sum(map(_size, works)) <= self._most

    def _holds(self, work: PlannedChange) -> bool:
        if not isinstance(work.change, (Put, Remove)) or in_memory(work.target):
            return False
        is_file = work.found is None or stat.S_ISREG(work.found.st_mode)
        return is_file and os.fstat(work.place.dir_fd).st_dev == self._workspace.identity[0]

    def append(self, intent: dict[str, Any], works: Sequence[PlannedChange]) -> None:
        """Add a commit that `takes` allowed, and wait for the disk. If OSError is raised, nothing is added."""
        record, new = _encode(intent, [_logged(work) for work in works]), not os.path.exists(self._path)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            frames = b"" if self._find_end(fd) is not None else self._begin()
            frames += _frame(self._number, record)
            try:
                pwrite_all(fd, frames, self._end)
                os.fdatasync(fd)
                if new:
                    _sync_parents(self._path)
            except OSError:
                os.ftruncate(fd, self._end)
                raise
            self._end += len(frames)
        finally:
            os.close(fd)

    def commits(self) -> list[LoggedCommit]:
        """Return all records, oldest first."""
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._find_end(fd)
            found, at = [], self._first
            while (frame := _frame_at(fd, self._number, at)) is not None:
                found.append(_decode(frame.content))
                at = frame.end
            return found
        finally:
            os.close(fd)

    @property
    def is_full(self) -> bool:
        """True if a checkpoint is due."""
        return self._end > self._most

    def checkpoint(self, *, redone: bool = False) -> None:
        """Sync the files of all records, then empty the log. Raises OSError; the log is then as it was.

        Records of an earlier boot stay unless they are redone.
        """
        state = self.state()
        if state == "moved":
            os.sync()  # the directory of the records may be on any file system
        elif state == "current" or (redone and state == "lost"):
            sync_whole([self._workspace.fd])
        else:
            return
        fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            pwrite_all(fd, self._begin(), 0)  # in place: a sync of blocks that exist takes less time
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def checkpoint_after(self, seconds: float, act: Callable[[], None]) -> None:
        """Let a thread call `act` after some time, unless one will already. `act` takes the lock."""
        if self._timer is None or self._timer_pid != os.getpid() or not self._timer.is_alive():
            self._timer, self._timer_pid = threading.Timer(seconds, act), os.getpid()
            self._timer.daemon = True
            self._timer.start()

    def stop(self) -> None:
        """End the thread, which may wait for the lock: the caller must not hold it."""
        if self._timer is not None and self._timer_pid == os.getpid():
            self._timer.cancel()
            self._timer.join()

    def remove(self) -> None:
        """Make a checkpoint and remove the log, unless it has records that this process must not drop."""
        self.checkpoint()
        if self.state() == "empty":
            with suppress(FileNotFoundError):
                os.unlink(self._path)

    def _begin(self) -> bytes:
        """Return the first frame of an empty log, with a new number."""
        self._number, self._end = os.urandom(8), 0
        about = {"boot": boot_id(), "root": self._workspace.identity[1]}
        first = _frame(self._number, json.dumps(about).encode())
        self._first = len(first)
        return first

    def _find_end(self, fd: int) -> dict[str, Any] | None:
        """Find the end of the log, which other processes change, too. Returns what it is about; None if it is new."""
        first = _frame_at(fd, b"", 0)
        if first is None:
            self._number, self._first, self._end = b"", 0, 0
            return None
        if first.number != self._number:
            self._number, self._first, self._end = first.number, first.end, first.end
        self._end = max(self._end, self._first)
        while (frame := _frame_at(fd, self._number, self._end)) is not None:
            self._end = frame.end
        return dict(json.loads(first.content))


def _size(work: PlannedChange) -> int:
    return len(work.change.data) if isinstance(work.change, Put) else 0


def _logged(work: PlannedChange) -> LoggedFile:
    if not isinstance(work.change, Put):
        return LoggedFile(work.target, 0, None)
    return LoggedFile(work.target, stat.S_IMODE(work.made.st_mode) if work.made else 0o666, work.change.data)


def _frame(number: bytes, content: bytes) -> bytes:
    return _FRAME.pack(number, len(content), zlib.crc32(content, zlib.crc32(number))) + content


def _frame_at(fd: int, number: bytes, at: int) -> _Frame | None:
    """Return the whole frame at an offset, of a number unless that is empty; None if the log ends here."""
    head = os.pread(fd, _FRAME.size, at)
    if len(head) < _FRAME.size:
        return None
    found, size, checksum = _FRAME.unpack(head)
    if number not in (b"", found) or size > os.fstat(fd).st_size:
        return None
    content = os.pread(fd, size, at + _FRAME.size)
    if len(content) != size or zlib.crc32(content, zlib.crc32(found)) != checksum:
        return None
    return _Frame(found, content, at + _FRAME.size + size)


def _encode(intent: dict[str, Any], files: Sequence[LoggedFile]) -> bytes:
    sizes = [(each.target, each.mode, -1 if each.data is None else len(each.data)) for each in files]
    head = json.dumps({"intent": intent, "time_ns": time.time_ns(), "files": sizes}).encode()
    return b"\n".join([head, b"".join(each.data or b"" for each in files)])


def _decode(record: bytes) -> LoggedCommit:
    head, _, rest = record.partition(b"\n")
    facts, files, at = json.loads(head), [], 0
    for target, mode, size in facts["files"]:
        files.append(LoggedFile(target, mode, None if size < 0 else rest[at : at + size]))
        at += max(size, 0)
    return LoggedCommit(facts["intent"], facts["time_ns"], files)


def _sync_parents(path: str) -> None:
    """Sync the directories above a new file: without them the file would not be found after a loss of power."""
    while path != (path := os.path.dirname(path)):
        with suppress(PermissionError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
