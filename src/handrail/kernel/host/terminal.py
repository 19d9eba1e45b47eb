"""The person's own terminal, for questions: not standard input, which may carry the calls."""

import os
import sys
from typing import TextIO


def open_terminal() -> tuple[TextIO, TextIO] | None:
    """To read an answer from and to write a question to; None where nobody is looking."""
    if not sys.stderr.isatty():
        return None
    try:
        fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    speaks = sys.stderr.encoding
    return open(fd, encoding=speaks, errors="replace"), open(
        os.dup(fd), "w", encoding=speaks, errors="backslashreplace"
    )


def user_is_here() -> bool:
    """Says whether the process has a controlling terminal and reads from it, as a command that a user typed does."""
    if not sys.stdin.isatty():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def forget_typed(reader: TextIO) -> None:
    """What was typed before a question was shown is no answer to it. What is piped in was meant as one, and stays."""
    if not reader.isatty():
        return
    import termios  # noqa: PLC0415  not everywhere

    try:
        termios.tcflush(reader.fileno(), termios.TCIFLUSH)
    except termios.error as error:
        raise OSError(*error.args) from error


def wants_colour(stream: TextIO) -> bool:
    return can_erase(stream) and not os.environ.get("NO_COLOR")


def can_erase(stream: TextIO) -> bool:
    """Whether it is a terminal on which more can be done than to add text."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def size(default: tuple[int, int] = (80, 24)) -> tuple[int, int]:
    for fd in (2, 1, 0):
        try:
            found = os.get_terminal_size(fd)
        except OSError:
            continue
        if found.columns and found.lines:
            return found.columns, found.lines
    return default
