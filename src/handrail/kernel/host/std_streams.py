"""Makes the three standard streams usable: the parent process may have closed them, or use no UTF-8."""

import io
import os
import select
import stat
import sys
from contextlib import suppress

_STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))


def steady_streams() -> None:
    """Open closed streams on /dev/null, so that no other file gets their numbers; escape unprintable characters."""
    for number, (name, mode) in enumerate(_STREAMS):
        if not _is_open(number):
            os.set_inheritable(os.open(os.devnull, mode), True)  # open() returns the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if mode == os.O_RDONLY else "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(line: str) -> None:
    """Write a line to standard error; drop it if the reader is gone or too slow."""
    poller = select.poll()
    poller.register(2, select.POLLOUT)
    data = f"{line}\n".encode(errors="backslashreplace")
    if poller.poll(0):  # a pipe that is ready accepts PIPE_BUF bytes at once
        with suppress(OSError):
            os.write(2, data[: select.PIPE_BUF])


def file_behind_stderr() -> str:
    """Return the path of the file that standard error goes to; empty if it is a terminal, a pipe or unknown."""
    if not stat.S_ISREG(os.fstat(2).st_mode):
        return ""
    with suppress(OSError):  # only Linux has this link
        return os.readlink("/proc/self/fd/2")
    return ""


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
