"""Opens the user's terminal for questions. It is not standard input, which may carry calls."""

import os
import select
import sys
import threading
from typing import TextIO

from handrail.model.withdrawal import expect_wanted

_KEYS = 4096
"""The most bytes that are read as one answer: as many as a terminal holds."""
_LOOK_SECONDS = 0.1
"""How often a question looks whether it was given up."""
_given_up = threading.Event()


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


def give_up_questions() -> None:
    """End the question that waits for a key, as at the end of the input, and all later ones: the user has left."""
    _given_up.set()


def ask_for_key(reader: TextIO, writer: TextIO, prompt: str) -> str:
    """Discard earlier input, show the prompt, and return the keys that the user presses next, without Enter.

    Raises Withdrawn if another place answers the question.

    Several characters come from one special key, or were pasted. An empty string means the end of the input. If the
    reader is no terminal, the answer is a line.
    """
    if not reader.isatty():
        writer.write(prompt)
        writer.flush()
        return reader.readline()
    import termios  # noqa: PLC0415  not available on every system

    fd = reader.fileno()
    try:
        before = termios.tcgetattr(fd)
        now = [*before[:3], before[3] & ~(termios.ICANON | termios.ECHO), *before[4:6], [*before[6]]]
        now[6][termios.VMIN], now[6][termios.VTIME] = 1, 0
        try:
            termios.tcsetattr(fd, termios.TCSAFLUSH, now)  # before the prompt, so that the terminal echoes no answer
            writer.write(prompt)
            writer.flush()
            poller = select.poll()  # unlike select.select, it takes handles beyond 1023
            poller.register(fd, select.POLLIN)
            while not poller.poll(_LOOK_SECONDS * 1000):
                expect_wanted()
                if _given_up.is_set():
                    return ""
            return os.read(fd, _KEYS).decode(reader.encoding, "replace")
        finally:
            termios.tcsetattr(fd, termios.TCSANOW, before)
    except termios.error as error:
        raise OSError(*error.args) from error


def wait_for_line(reader: TextIO) -> None:
    """Wait until a terminal has a line. Raises Withdrawn if another place answers the question."""
    if not reader.isatty():
        return
    poller = select.poll()
    poller.register(reader.fileno(), select.POLLIN)
    while not poller.poll(_LOOK_SECONDS * 1000):
        expect_wanted()


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
