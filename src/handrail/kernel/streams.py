"""The three standard streams, fit to be used: whoever starts a command may have closed them, or speak no UTF-8."""

import io
import os
import sys

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


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
