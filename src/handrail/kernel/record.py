"""The record of intent: written before a commit touches anything, so that the next open can put things right.

Each process keeps one such file per workspace and holds a lock on it while it lives. A file whose lock is free belongs
to a process that was killed; what it says then is what is left to do.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

_OPEN, _DONE, _IDLE = b"O", b"D", b"-"
_HEAD = 13


@dataclass(slots=True)
class Step:
    """One name that a commit changes. `identity` is what the new file is known by once it exists."""

    directory: str
    name: str
    temp: str
    old: str
    creates: bool = False
    removes: bool = False
    identity: list[int] | None = None


@dataclass(slots=True)
class Record:
    fd: int
    root: list[int]
    steps: list[Step] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Directories that the commit creates, outermost first."""
    done: bool = False
    created: set[str] = field(default_factory=set)

    def save(self, *, sync: bool) -> None:
        steps = [[getattr(step, name) for name in Step.__slots__] for step in self.steps]
        facts = {"root": self.root, "steps": steps, "made": self.made}
        body = json.dumps(facts).encode()
        os.pwrite(self.fd, _OPEN + b"%12d" % len(body) + body, 0)
        if sync:
            os.fsync(self.fd)

    def mark_done(self, *, sync: bool) -> None:
        os.pwrite(self.fd, _DONE, 0)
        if sync:
            os.fsync(self.fd)
        self.done = True

    def end(self) -> None:
        """Everything is in its place: forget it."""
        os.pwrite(self.fd, _IDLE, 0)


class Ledger:
    """The file of intent of our process. To be used under the workspace's lock."""

    def __init__(self, pending: str) -> None:
        self._pending, self._fd, self._count = pending, -1, 0
        self.token, self._path = "", ""

    def begin(self, root: os.stat_result) -> Record:
        if self._fd < 0:
            self.token, self._count = secrets.token_hex(6), 0
            self._path = os.path.join(self._pending, self.token)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._count += 1
        return Record(self._fd, [root.st_dev, root.st_ino])

    def spare_names(self, number: int) -> tuple[str, str]:
        """Names for a new file on its way in and an old one on its way out, used by no other commit."""
        stem = f".handrail-{self.token}-{self._count}-{number}"
        return f"{stem}.new", f"{stem}.old"

    def leave(self) -> None:
        """Let go of a record that could not be ended: it is as if its process had been killed."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        if self._fd >= 0:
            self.leave()
            with suppress(FileNotFoundError):
                os.unlink(self._path)

    def abandoned(self) -> Iterator[Record]:
        """The open records of processes that were killed; their files go when the caller has dealt with them."""
        for name in sorted(os.listdir(self._pending)):
            if self._fd >= 0 and name == self.token:
                continue
            path = os.path.join(self._pending, name)
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                record = _read(fd)
                if record is not None:
                    yield record
                os.unlink(path)
            except BlockingIOError:
                continue  # its owner lives
            finally:
                os.close(fd)


def _read(fd: int) -> Record | None:
    """What a file says is left to do; None where its owner was between two commits, or had only begun to write."""
    head = os.pread(fd, _HEAD, 0)
    if len(head) < _HEAD or head[:1] == _IDLE:
        return None
    body = os.pread(fd, int(head[1:]), _HEAD)
    if len(body) < int(head[1:]):
        return None
    facts = json.loads(body)
    steps = [Step(*step) for step in facts["steps"]]
    return Record(fd, facts["root"], steps, facts["made"], done=head[:1] == _DONE)
