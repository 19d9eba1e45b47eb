"""The three standard streams, fit to be used: whoever starts a command may have closed them, or speak no UTF-8."""

import io
import os
import select
import stat
import sys
from contextlib import suppress

_STREAMS = (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))


def steady_streams() -> None:
    """A closed one leads nowhere, so that no file of ours gets its number; what cannot be shown is escaped."""
    for number, (name, mode) in enumerate(_STREAMS):
        if not _is_open(number):
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if mode == os.O_RDONLY else "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(line: str) -> None:
    """Writes a line to standard error; drops it where a reader is gone or does not keep up."""
    waiting = select.poll()
    waiting.register(2, select.POLLOUT)
    data = f"{line}\n".encode(errors="backslashreplace")
    if waiting.poll(0):  # a pipe that is ready takes a page at once
        with suppress(OSError):
            os.write(2, data[: select.PIPE_BUF])


def file_behind_stderr() -> str:
    """The path of the file that standard error is kept in; empty where it is a terminal, a pipe or unknown."""
    if not stat.S_ISREG(os.fstat(2).st_mode):
        return ""
    with suppress(OSError):  # only Linux can say
        return os.readlink("/proc/self/fd/2")
    return ""


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
