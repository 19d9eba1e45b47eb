"""Reserves standard input and output for a protocol: no other code in the process can read or write them."""

import fcntl
import os
import resource
import threading
from collections.abc import Iterator

_CHUNK = 1 << 16


class LineChannel:
    """Reads and writes lines on standard input and output. Other output of the process goes to standard error."""

    def __init__(self, limit: int) -> None:
        """`limit` is the longest line, in bytes, that is kept."""
        self._limit = limit
        self._write_lock = threading.Lock()
        self._in, self._out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
        nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nowhere, 0)
        os.dup2(2, 1)
        os.close(nowhere)

    def lines(self) -> Iterator[bytes | None]:
        """Yield each line without its end; None for a line that is longer than the limit."""
        kept: list[bytes] = []
        size = 0
        while chunk := os.read(self._in, _CHUNK):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                yield b"".join([*kept, piece]) if size + len(piece) <= self._limit else None
                kept, size = [], 0
            size += len(rest)
            if size > self._limit:
                kept.clear()
            elif rest:
                kept.append(rest)
        if size:
            yield b"".join(kept) if size <= self._limit else None

    def write(self, line: bytes) -> None:
        """Write a whole line. Raises BrokenPipeError if the reader is gone."""
        rest = memoryview(line + b"\n")
        with self._write_lock:
            while rest:
                rest = rest[os.write(self._out, rest) :]


def raise_file_limit() -> None:
    """Raise the limit of open files as far as the system allows: each connection is an open file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
