"""Lets the user edit one line in the terminal, with text already in it."""

import codecs
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from handrail.kernel.host.terminal import size
from handrail.ops.text.display import one_line

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[@-~]|O[A-Z])")
_LEFT, _RIGHT = ("\x1b[D", "\x1bOD", "\x02"), ("\x1b[C", "\x1bOC", "\x06")
_HOME, _END = ("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"), ("\x1b[F", "\x1bOF", "\x1b[4~", "\x05")
_BACKSPACE, _DELETE, _CLEAR, _DONE, _END_OF_FILE = ("\x7f", "\b"), "\x1b[3~", "\x15", ("\r", "\n"), "\x04"


def edit_line(reader: TextIO, writer: TextIO, prompt: str, text: str) -> str | None:
    """Return the edited line; None if input ends, or if the user presses Ctrl-D on an empty line.

    If the terminal is closed, input ends, or OSError is raised.
    """
    line = _EditedLine(text)
    with _single_keys(reader):
        line.draw(writer, prompt)
        for key in _keys(reader):
            if key in _DONE or (key == _END_OF_FILE and not line.text):
                writer.write("\n")
                writer.flush()
                return line.text if key in _DONE else None
            line.take(key)
            line.draw(writer, prompt)
    return None


class _EditedLine:
    """Holds the text and the position of the cursor."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, len(text)

    def take(self, key: str) -> None:
        """Apply one key."""
        before, after = self.text[: self.at], self.text[self.at :]
        if key in _LEFT:
            self.at = max(0, self.at - 1)
        elif key in _RIGHT:
            self.at = min(len(self.text), self.at + 1)
        elif key in _HOME:
            self.at = 0
        elif key in _END:
            self.at = len(self.text)
        elif key in _BACKSPACE:
            self.text, self.at = before[:-1] + after, max(0, self.at - 1)
        elif key == _DELETE:
            self.text = before + after[1:]
        elif key == _CLEAR:
            self.text, self.at = "", 0
        elif key.isprintable():
            self.text, self.at = before + key + after, self.at + len(key)

    def draw(self, writer: TextIO, prompt: str) -> None:
        """Draw the part around the cursor that fits the current width of the terminal."""
        room = max(10, size()[0] - len(prompt) - 1)
        before = "".join(one_line(char) for char in self.text[: self.at])
        after = "".join(one_line(char) for char in self.text[self.at :])
        head = before[-(room - 1) :] if len(before) >= room else before
        tail = after[: room - len(head)]
        back = f"\x1b[{len(tail)}D" if tail else ""
        writer.write(f"\r{prompt}{head}{tail}\x1b[K{back}")
        writer.flush()


@contextmanager
def _single_keys(reader: TextIO) -> Iterator[None]:
    """Deliver each key when it is pressed, without echo. Ctrl-C still interrupts."""
    import termios  # noqa: PLC0415  not available on every system

    fd = reader.fileno()
    try:
        before = termios.tcgetattr(fd)
        now = termios.tcgetattr(fd)
        now[3] &= ~(termios.ICANON | termios.ECHO)
        now[0] &= ~termios.ICRNL
        termios.tcsetattr(fd, termios.TCSAFLUSH, now)  # discard keys typed before the line appeared
    except termios.error as error:
        raise OSError(*error.args) from error
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is closed
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _keys(reader: TextIO) -> Iterator[str]:
    """Yield characters, and the escape sequences of keys without a character."""
    decoder = codecs.getincrementaldecoder(reader.encoding)(errors="replace")
    rest = ""
    while data := os.read(reader.fileno(), 4096):
        rest += decoder.decode(data)
        while rest:
            sequence = _SEQUENCE.match(rest)
            if sequence is None and rest.startswith("\x1b") and len(rest) < 3:
                break  # wait for the rest of the sequence
            key = sequence[0] if sequence else rest[0]
            rest = rest[len(key) :]
            yield key
