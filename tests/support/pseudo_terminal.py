"""Plays a user at a real pseudo-terminal, which is the controlling terminal of the command."""

import os
import pty
import select
import struct
import subprocess
import sys
from contextlib import suppress
from fcntl import ioctl
from termios import TIOCSWINSZ
from types import TracebackType
from typing import Self

# The child makes the terminal on its standard error its controlling terminal, then executes the command.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
PATIENCE = 300


def unwrapped(shown: str) -> str:
    """Return what a question showed, with the lines that it broke at the edge of the terminal put together."""
    return shown.replace("\n    ", "")


class Terminal:
    def __init__(
        self,
        *argv: str,
        stdin: bytes | None = None,
        rows: int = 24,
        columns: int = 120,
        controlling: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        """Start a command. Without `stdin` it reads the terminal."""
        self._master, slave = pty.openpty()
        ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-IS", "-c", _TAKE_TERMINAL, *argv] if controlling else argv,
            stdin=slave if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._seen = b""
        self._encoding = encoding
        if stdin is not None:
            assert self._process.stdin is not None
            self._process.stdin.write(stdin)
            self._process.stdin.close()

    def until(self, text: str) -> str:
        """Return the output up to the end of `text`, with LF line ends."""
        sought = text.encode(self._encoding)
        while (at := self._seen.find(sought)) < 0:
            assert self._read(), f"{text!r} was never shown, but {self._seen.decode(self._encoding)!r}"
        at += len(sought)
        shown, self._seen = self._seen[:at], self._seen[at:]
        return shown.decode(self._encoding).replace("\r\n", "\n")

    def send(self, text: str) -> None:
        os.write(self._master, text.encode(self._encoding))

    def hang_up(self) -> None:
        """Close the terminal, like a lost connection."""
        gone, self._master = self._master, os.open(os.devnull, os.O_RDONLY)
        os.close(gone)

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end; return exit status, standard output and the rest of the terminal output."""
        assert self._process.stdout is not None
        while self._read():
            pass
        out = self._process.stdout.read().decode()
        status = self._process.wait(PATIENCE)
        return status, out, self._seen.decode(self._encoding).replace("\r\n", "\n")

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE)
        assert ready, f"nothing more was shown after {self._seen.decode(self._encoding)!r}"
        with suppress(OSError):  # EIO: no process has the terminal open any more
            more = os.read(self._master, 65536)
            self._seen += more
            return bool(more)
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        os.close(self._master)
