"""Standard input and output as a protocol's wire: nothing else in the process can read or write it."""

import fcntl
import os
import resource
import threading
from collections.abc import Iterator

_CHUNK = 1 << 16


class LineChannel:
    """Lines in, lines out. Whatever prints in the meantime lands on standard error."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._turn = threading.Lock()
        self._in, self._out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
        nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(nowhere, 0)
        os.dup2(2, 1)
        os.close(nowhere)

    def lines(self) -> Iterator[bytes | None]:
        """Each line without its end; None for one that was too long to keep."""
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
        """All of it; raises BrokenPipeError when the reader is gone."""
        rest = memoryview(line + b"\n")
        with self._turn:
            while rest:
                rest = rest[os.write(self._out, rest) :]


def raise_file_limit() -> None:
    """As many open files as the system lets this process have: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
