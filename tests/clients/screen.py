"""Runs a program in a terminal of its own (tmux), types keys and reads what is on the screen."""

import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 120
"""Seconds until the screen must show what a test waits for."""


class Screen:
    """Holds one program in a terminal with 120 columns and 60 rows; counts the keys that were typed."""

    def __init__(self, place: Path, argv: list[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(place / "tmux"), "-f", "/dev/null"]
        self.keys = 0
        variables = [f"{name}={value}" for name, value in env.items()]
        line = shlex.join(["env", "-i", *variables, *argv])
        size = ["-x", "120", "-y", "60"]
        self._run("new-session", "-d", "-s", "client", *size, "-c", str(cwd), f"{line}; echo ended: $?; sleep 600")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("kill-server")

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], check=True, capture_output=True, text=True).stdout

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "client")

    def press(self, *keys: str) -> None:
        """Type keys, with the names of tmux: Enter, Escape, Down, or single characters."""
        time.sleep(1)  # a user reads first; some clients ignore keys that come with the question
        for key in keys:
            self._run("send-keys", "-t", "client", key)
            self.keys += 1
            time.sleep(0.3)  # a user is not faster, and some programs take quick keys for pasted text

    def type(self, text: str) -> None:
        """Type a text that is no answer to a question, and send it."""
        self._run("send-keys", "-t", "client", "-l", text)
        self.until(re.escape(text))
        time.sleep(1)  # Enter right behind a text belongs to pasted text for some programs
        self._run("send-keys", "-t", "client", "Enter")

    def until(self, pattern: str) -> str:
        """Wait until the screen shows a pattern, and return the screen."""
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, shown := self.text()):
            assert time.monotonic() < end, f"{pattern!r} was never shown, but:\n{shown.rstrip()}"
            time.sleep(0.2)
        return shown
