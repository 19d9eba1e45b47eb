"""Sends what an episode prints to the log of its task: a host has one standard output for all its episodes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from handrail.model.fleet_limits import PRINTED_CHARS

Print = Callable[[str], None]
_current: ContextVar["_Lines | None"] = ContextVar("handrail_episode_output", default=None)


class _Lines:
    """Collects the output of one episode, and passes whole lines on."""

    def __init__(self, tell: Print) -> None:
        self._tell, self._part, self._left = tell, "", PRINTED_CHARS

    def add(self, text: str) -> None:
        whole, newline, self._part = (self._part + text[: self._left]).rpartition("\n")
        self._left -= min(len(text), self._left)
        if newline:
            self._tell(whole)
        elif not self._left:
            self.end()

    def end(self) -> None:
        if self._part:
            self._tell(self._part)
            self._part = ""


class _Output:
    """Replaces a standard stream; writes to the episode of the thread, or to the stream itself."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        lines = _current.get()
        if lines is None:
            return int(self._stream.write(text))
        lines.add(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Bytes:
    """Takes the bytes of an episode; those that are no text become visible escapes."""

    def __init__(self, output: _Output) -> None:
        self._output = output

    def write(self, data: bytes) -> int:
        self._output.write(bytes(data).decode(errors="backslashreplace"))
        return len(data)

    def flush(self) -> None:
        """Do nothing: lines are passed on when they are whole."""


def divide() -> None:
    """Divide the standard streams of this process among its episodes."""
    sys.stdout, sys.stderr = _Output(sys.stdout), _Output(sys.stderr)


@contextmanager
def printing(tell: Print) -> Iterator[None]:
    """Pass the lines that this thread prints in the block to a function, up to a limit."""
    lines = _Lines(tell)
    token = _current.set(lines)
    try:
        yield
    finally:
        lines.end()
        _current.reset(token)
