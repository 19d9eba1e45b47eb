"""Opens the user's terminal for questions. It is not standard input, which may carry calls."""

import os
import sys
from typing import TextIO


def open_terminal() -> tuple[TextIO, TextIO] | None:
    """Return a reader for answers and a writer for questions; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    encoding = sys.stderr.encoding
    return open(fd, encoding=encoding, errors="replace"), open(
        os.dup(fd), "w", encoding=encoding, errors="backslashreplace"
    )


def user_is_here() -> bool:
    """Return True if the process has a controlling terminal and reads from it, as a command that a user typed does."""
    if not sys.stdin.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def forget_typed(reader: TextIO) -> None:
    """Discard input typed before a question appears. Keep piped input, which is meant as an answer."""
    if not reader.isatty():
        return
    import termios  # noqa: PLC0415  not available on every system

    try:
        termios.tcflush(reader.fileno(), termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error


def wants_colour(stream: TextIO) -> bool:
    """Return True if a stream is a terminal with colours and NO_COLOR is not set."""
    return can_erase(stream) and not os.environ.get("NO_COLOR")


def can_erase(stream: TextIO) -> bool:
    """Return True if a stream is a terminal that understands control sequences."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def size(default: tuple[int, int] = (80, 24)) -> tuple[int, int]:
    """Return (columns, lines) of the terminal."""
    for fd in (2, 1, 0):
        try:
            found = os.get_terminal_size(fd)
        except OSError:
            continue
        if found.columns and found.lines:
            return found.columns, found.lines
    return default
