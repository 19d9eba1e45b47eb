"""Keeps the output of a command within a limit: its beginning, its end, and the whole output in a file."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from handrail.kernel.host.state_dir import make_private
from handrail.model.limits import Limits

_F_SETPIPE_SZ = 1031
_USUAL_PIPE, _CHUNK = 1 << 16, 1 << 20
_JOB = "job-"
"""The names of files with the output of jobs begin with this; they are not counted, as a running job fills them."""


class Output(NamedTuple):
    """Holds what was kept of one stream."""

    head: bytes
    tail: bytes = b""
    cut_bytes: int = 0
    """The number of bytes that are missing between head and tail."""
    spool: str = ""
    """A file with the whole output, if something was cut."""
    spooled_bytes: int = 0
    """The number of bytes of the output in the file: all of it, unless its own limit or a full disk prevented that."""

    @property
    def total_bytes(self) -> int:
        return len(self.head) + self.cut_bytes + len(self.tail)

    def joined(self, line: bytes) -> bytes:
        """Return the kept output, with `line` on a line of its own in place of the cut part."""
        if not self.cut_bytes:
            return self.head
        before = b"" if self.head.endswith(b"\n") or not self.head else b"\n"
        return b"".join((self.head, before, line, b"\n", self.tail))

    def shortened(self, limit: int, new_spool: Callable[[], tuple[int, str]]) -> "Output":
        """Return the output with at most `limit` bytes kept, half of them from its end, cut between lines if possible.

        If no file has the whole output yet, a new one gets it.
        """
        if len(self.head) + len(self.tail) <= limit:
            return self
        spool, spooled = (self.spool, self.spooled_bytes) if self.cut_bytes else _spooled(self.head, new_spool)
        first = _whole_lines_at_end(self.head[: limit // 2])
        end = self.tail if self.cut_bytes else self.head
        last = _whole_lines_at_start(end[max(0, len(end) - limit // 2) :])
        return Output(first, last, self.total_bytes - len(first) - len(last), spool, spooled)


def shares(sizes: tuple[int, int], limit: int) -> tuple[int, int]:
    """Divide a limit among two streams: a short one is kept whole, and the other gets what is left."""
    first, second, half = *sizes, limit // 2
    if first <= half:
        return first, limit - first
    return (limit - second, second) if second <= half else (half, half)


def _spooled(content: bytes, new_spool: Callable[[], tuple[int, str]]) -> tuple[str, int]:
    """Write a whole output to a new file; return its path and how much of the output it has."""
    try:
        fd, name = new_spool()
    except OSError:  # no file can be made: the output is cut all the same
        return "", 0
    with open(fd, "wb", buffering=0) as file:
        try:
            return name, file.write(content)
        except OSError:  # the disk is full
            return "", 0


class OutputFiles:
    """Keeps the newest files with whole outputs for a while, so that later commands can read them."""

    def __init__(self, directory: str, limits: Limits, owner: tuple[int, int] | None = None) -> None:
        """`owner` is the user and group that commands run as; None for those of this process."""
        self.directory, self._limits, self._owner = directory, limits, owner
        make_private(directory)
        if owner is not None:
            os.chown(directory, *owner)

    def new(self) -> tuple[int, str]:
        """Make a new file; return its handle and its path."""
        self.prune(self._limits.spools - 1)
        return self._make("output-")

    def new_for_job(self) -> tuple[int, str]:
        """Make a file for the output of a job, which removes it in the end."""
        return self._make(_JOB)

    def _make(self, prefix: str) -> tuple[int, str]:
        fd, name = tempfile.mkstemp(prefix=prefix, suffix=".txt", dir=self.directory)
        if self._owner is not None:
            os.fchown(fd, *self._owner)
        return fd, name

    def prune(self, most: int | None = None) -> None:
        """Remove old files, and all but the newest `most`. Ignore errors: the next call tries again."""
        with contextlib.suppress(OSError):  # another session removed files at the same time, or the disk fails
            with os.scandir(self.directory) as listed:
                aged = sorted((time.time() - each.stat().st_mtime, each.path) for each in listed)
            count = 0
            for age, path in aged:
                counts = not os.path.basename(path).startswith(_JOB)
                count += counts
                excess = counts and count > (self._limits.spools if most is None else most)
                if excess or age > self._limits.spool_seconds:
                    with contextlib.suppress(OSError):  # continue with the other files
                        os.unlink(path)


class BoundedOutput:
    """Reads a stream of any length. Its use of memory is bounded by the limit."""

    def __init__(
        self,
        limit: int,
        spool_limit: int,
        new_spool: Callable[[], tuple[int, str]],
        tap: Callable[[bytes], None] | None = None,
    ) -> None:
        """`tap` is called with each piece that is pulled, while the command runs."""
        self._tap = tap
        self._limit, self._spool_limit, self._new_spool = limit, spool_limit, new_spool
        self._start = bytearray()
        self._buffer = memoryview(bytearray(_USUAL_PIPE))
        self._held = 0
        """The bytes in the buffer that are not in the file yet: few large writes are faster."""
        self._beyond = bytearray()
        """The end of the output that did not fit into the file."""
        self._total = self._spooled = 0
        self._cutting = False
        self._spool, self._spool_name = -1, ""

    def pull(self, pipe: int) -> int:
        """Read what is in a pipe; return the number of bytes."""
        # splice() into the file would be slower: it works page by page.
        count = os.readv(pipe, [self._buffer[self._held :]])
        if self._tap is not None and count:
            self._tap(bytes(self._buffer[self._held : self._held + count]))
        if self._keep(count):
            _widen(pipe)
        return count

    def take(self, chunk: bytes) -> None:
        """Keep a chunk that was read elsewhere."""
        rest = memoryview(chunk)
        while rest:
            fits = rest[: len(self._buffer) - self._held]
            self._buffer[self._held : self._held + len(fits)] = fits
            self._keep(len(fits))
            rest = rest[len(fits) :]

    def _keep(self, count: int) -> bool:
        """Keep the next bytes of the buffer. Return True if the output became longer than the limit."""
        self._total += count
        self._held += count
        if self._total <= self._limit:
            self._start += self._buffer[: self._held]
            self._held = 0
        elif not self._cutting:
            self._begin_to_cut()
            return True
        elif self._held == len(self._buffer):
            self._flush()
        return False

    @property
    def wants_more(self) -> bool:
        """True if the buffer should be filled before it is written to the file."""
        return self._held > 0

    def _begin_to_cut(self) -> None:
        """Write everything to a file from now on: the output is longer than the limit."""
        self._cutting = True
        self._open_spool()
        self._write(memoryview(bytes(self._start)))
        self._start += self._buffer[: self._held]
        del self._start[self._limit // 2 :]
        self._flush()
        self._buffer = memoryview(bytearray(_CHUNK))

    def _flush(self) -> None:
        self._write(self._buffer[: self._held])
        self._held = 0

    def _open_spool(self) -> None:
        try:
            self._spool, self._spool_name = self._new_spool()
        except OSError:  # no file can be made: `spool` stays empty
            self._spool_limit = 0

    def _write(self, chunk: memoryview) -> None:
        while fits := chunk[: self._spool_limit - self._spooled]:
            try:
                written = os.write(self._spool, fits)
            except OSError:  # the disk is full: keep what was written; `spooled_bytes` says how much that is
                self._spool_limit = self._spooled
            else:
                self._spooled += written
                chunk = chunk[written:]
        self._beyond += chunk[-self._limit :]
        if len(self._beyond) > _CHUNK + self._limit:
            del self._beyond[: -self._limit]

    def finish(self) -> Output:
        """Return what was kept, after the stream has ended."""
        if not self._cutting:
            return Output(bytes(self._start))
        self._flush()
        head = bytes(self._start)
        length = min(self._limit // 2, self._total - len(head))
        from_file = max(0, length - len(self._beyond))
        kept = bytes(self._beyond)
        if self._spool >= 0:
            kept = os.pread(self._spool, from_file, max(0, self._spooled - from_file)) + kept
            os.close(self._spool)
        head, tail = _whole_characters_at_end(head), _whole_characters_at_start(kept[len(kept) - length :])
        return Output(head, tail, self._total - len(head) - len(tail), self._spool_name, self._spooled)


def _widen(fd: int) -> None:
    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _CHUNK)
    except OSError:
        return  # the user's share of pipe memory is used up: keep the usual size


def _whole_lines_at_end(text: bytes) -> bytes:
    """Return a text without its last line if that is not whole; without its last character if the line is long."""
    whole = text.rfind(b"\n") + 1
    return text[:whole] if whole > len(text) // 2 else _whole_characters_at_end(text)


def _whole_lines_at_start(text: bytes) -> bytes:
    start = text.find(b"\n") + 1
    return text[start:] if 0 < start < len(text) // 2 else _whole_characters_at_start(text)


def _whole_characters_at_end(text: bytes) -> bytes:
    for back in range(1, min(4, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return text[:-back] if back < needed else text
        if byte < 0x80:
            return text
    return text


def _whole_characters_at_start(text: bytes) -> bytes:
    at = 0
    while at < min(3, len(text)) and 0x80 <= text[at] < 0xC0:
        at += 1
    return text[at:]
