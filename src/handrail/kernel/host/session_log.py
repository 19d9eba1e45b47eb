"""Writes the session log: JSON lines, requests at INFO, responses at DEBUG.

The log hides secrets and cuts long contents; such a line says `shortened`. `replay.py` can replay all other lines.
"""

import json
import os
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

from handrail.kernel.host.state_dir import make_private
from handrail.ops.secrets import HIDDEN, hide_secrets, may_hold_secret, names_secret
from handrail.ops.text.display import one_line

_LEVELS = {"debug": 0, "info": 1, "off": 2}
_LONGEST_SECRET = 512
_SHORT_KEY = 100
"""The longest name of a parameter that can name a secret."""
_USER_LINE_CHARS = 2000
"""The longest line that is shown to the user."""
_LONGEST_INTEGER = 4096
"""In bits: Python refuses to write out integers of about four times this length."""
# O_NONBLOCK: do not wait for a FIFO without a reader or one that is full.
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_encode = json.JSONEncoder(default=str).encode


def warn(line: str) -> None:
    """Log a warning for the program that uses the library; by default Python prints it to standard error."""
    import logging  # noqa: PLC0415  saves start-up time: only refusals need it

    logging.getLogger("handrail").warning("%s", line)


def only_log(_line: str) -> None:
    """Show nothing: the line is in the session log, and a replay or a demo has nothing to allow."""


class _Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class SessionLog:
    """Writes the log of one session.

    `about` is added to the first request: the workspace and the version. `tell` is called with what would allow a
    refused call: that is for the user, so no result contains it.
    """

    def __init__(
        self,
        path: str | None,
        *,
        level: str,
        chars: int,
        session: str,
        about: dict[str, str] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._about, self._tell = about or {}, tell
        self._chars, self._session, self._count = chars, session, 0
        self._level = _LEVELS[level] if path else _LEVELS["off"]
        self.path = path
        self._fd, self._lock = -1, threading.Lock()
        if path and level != "off":
            make_private(os.path.dirname(os.path.abspath(path)))
            self._fd = os.open(path, _APPENDING, 0o600)

    def request(self, dialect: str, tool: str, params: Any, call_id: str | None) -> int:
        """Log a call; return its number, which the other methods need."""
        self._count += 1
        if self._fd >= 0:
            line = {**self._about, "dialect": dialect, "tool": tool, "params": params}
            self._about = {}
            self._write("INFO", "request", self._count, line if call_id is None else line | {"id": call_id})
        return self._count

    def response(self, number: int, result: _Result) -> None:
        """Log the result of a call, at level debug only."""
        if self._fd >= 0 and self._level <= _LEVELS["debug"]:
            self._write("DEBUG", "response", number, {"result": result.to_dict()})

    def refusal(self, number: int, tool: str, allow: str) -> None:
        """Log what would allow a call that was refused, and show it to the user."""
        if self._fd >= 0:
            self._write("INFO", "refusal", number, {"tool": tool, "allow": allow})
        if self._tell is not None:
            self._tell(one_line(f"{tool}: {allow}", _USER_LINE_CHARS))

    def hook(self, number: int, facts: dict[str, Any], message: str = "") -> None:
        """Log what a hook did, and show the user the message that it has."""
        if self._fd >= 0:
            self._write("INFO", "hook", number, facts)
        if message and self._tell is not None:
            self._tell(one_line(f"hook: {message}", _USER_LINE_CHARS))

    def note(self, event: str, facts: dict[str, Any]) -> None:
        """Log events that are not requests: the connections of commands, and the rights that they were given."""
        if self._fd >= 0:
            self._write("INFO", event, self._count, facts)

    def failure(self, number: int, tool: str, error: BaseException, event: str = "bug") -> None:
        """Log the traceback of an error, which no result contains."""
        import traceback  # noqa: PLC0415  saves start-up time: only failures need it

        if self._fd >= 0:
            text = "".join(traceback.format_exception(error))[-self._chars :]  # the end names the error
            self._write("ERROR", event, number, {"tool": tool, "traceback": text})

    def close(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, level: str, event: str, number: int, facts: dict[str, Any]) -> None:
        head = {"time": round(time.time(), 6), "level": level, "event": event, "session": self._session, "call": number}
        try:
            line = self._line(head, facts)
        except Exception:  # noqa: BLE001  a caller may pass objects that raise anything when read
            line = _encode({**head, "shortened": True})
        with self._lock:
            try:
                rest = line.encode() + b"\n"
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:
                self._end()  # a full disk or a lost reader must not stop the work: end the log here

    def _line(self, head: dict[str, Any], facts: dict[str, Any]) -> str:
        line = _as_json(head | facts)
        # Most lines are short and need no change. In a line with escapes a secret might not be recognised.
        if 0 < len(line) <= self._chars and "\\" not in line and not may_hold_secret(line):
            return line
        short = shorten(facts, self._chars)
        return _encode({**head, **({"shortened": True} if short != facts else {}), **short})


def _as_json(facts: dict[str, Any]) -> str:
    """Return the JSON text; empty if the value has no JSON form, such as a cycle or an odd key."""
    try:
        return _encode(facts)
    except (ValueError, TypeError, RecursionError):
        return ""


def shorten(value: Any, chars: int, depth: int = 20) -> Any:
    """Return the value as the log keeps it: long strings and deep nesting cut, likely secrets hidden."""
    if isinstance(value, str):
        shown = hide_secrets(value[: chars + _LONGEST_SECRET])
        return shown if len(value) <= chars else f"{shown[:chars]}… ({len(value)} characters)"
    if isinstance(value, dict | list) and depth == 0:
        return "…"
    if isinstance(value, dict):
        return {_key(key, chars): _item(key, each, chars, depth - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [shorten(each, chars, depth - 1) for each in value]
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    return value


def _key(key: Any, chars: int) -> str:
    short = isinstance(key, str) and len(key) <= _SHORT_KEY
    return _short_key(key, chars) if short else str(shorten(str(key), chars))


@lru_cache(256)
def _short_key(key: str, chars: int) -> str:
    return str(shorten(key, chars))


_names_secret = lru_cache(256)(names_secret)  # the same few names of parameters come again and again


def _item(key: Any, value: Any, chars: int, depth: int) -> Any:
    named = isinstance(value, str) and value and isinstance(key, str) and len(key) <= _SHORT_KEY
    hidden = named and _names_secret(key)
    return HIDDEN if hidden else shorten(value, chars, depth)
