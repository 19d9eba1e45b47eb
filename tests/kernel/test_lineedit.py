"""Edits a line at a real terminal, key by key."""

import os
import pty
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest

from handrail.kernel.host.line_edit import edit_line

DRAWN, LEFT = b"\x1b[K", b"\n"
HANG_UP = b"hang up"


class Screen:
    """Holds a terminal and a thread that types after each drawing."""

    def __init__(self) -> None:
        self.master, slave = pty.openpty()
        self.reader: TextIO = os.fdopen(slave, encoding="utf-8")
        self.writer: TextIO = os.fdopen(os.dup(slave), "w", encoding="utf-8")

    def edit(self, text: str, *typed: bytes) -> str | None:
        typist = threading.Thread(target=self._type, args=(typed,))
        typist.start()
        try:
            return edit_line(self.reader, self.writer, "> ", text)
        finally:
            typist.join()

    def _type(self, typed: tuple[bytes, ...]) -> None:
        for keys in typed:
            self._look_for(DRAWN)
            if keys == HANG_UP:
                os.close(self.master)
                self.master = -1
            else:
                os.write(self.master, keys)
        if typed and self.master >= 0:
            self._look_for(LEFT)  # otherwise the next line would read the drawing of this one

    def _look_for(self, sign: bytes) -> None:
        seen = b""
        while sign not in seen:
            seen += os.read(self.master, 4096)

    def close(self) -> None:
        for stream in (self.reader, self.writer):
            with suppress(OSError):  # unwritten drawing
                stream.close()
        if self.master >= 0:
            os.close(self.master)


@pytest.fixture
def screen() -> Iterator[Screen]:
    opened = Screen()
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([b"\r"], "text"),
        ([b"!\n"], "text!"),
        ([b"\x1b[D\x1b", b"[Dx\r"], "texxt"),
        ([b"\x1bOD\x1bOCx\x06\r"], "textx"),
        ([b"\x1b[H\x1b[3~\x1b[3~\r"], "xt"),
        ([b"\x1bOH<\x1bOF>\r"], "<text>"),
        ([b"\x1b[1~a\x1b[4~b\r"], "atextb"),
        ([b"\x01\x7f\x02\x05\b\r"], "tex"),
        ([b"\x15\x7f\x1b[D\x02\x1b[C\x1b[3~\r"], ""),
        ([b"\x15\xc3\xbc \xe2\x9c\x93\r"], "ü ✓"),
        ([b"\x15a\xc3", b"\xbc\r"], "aü"),
        ([b"\x04\r"], "text"),
        ([b"\x15\x04"], None),
        ([b"\x0e\x1b[99~\x1b[A\r"], "text"),
    ],
)
def test_edit_line_handles_usual_keys(screen: Screen, typed: list[bytes], expected: str | None) -> None:
    assert screen.edit("text", *typed) == expected


def test_edit_line_works_again_in_same_terminal(screen: Screen) -> None:
    assert screen.edit("one", b"\x15two\r") == "two"
    assert screen.edit("two", b"!\r") == "two!"


@pytest.mark.parametrize("typed", [(HANG_UP,), (b"x", HANG_UP)])
def test_edit_line_ends_when_terminal_closes(screen: Screen, typed: tuple[bytes, ...]) -> None:
    with suppress(OSError):  # the system tells it either way
        assert screen.edit("text", *typed) is None


def test_edit_line_without_terminal_raises_os_error(screen: Screen) -> None:
    os.close(screen.master)
    screen.master = -1
    with pytest.raises(OSError, match="Input/output error"):
        screen.edit("text")
