"""The session log: JSON lines, requests at INFO, responses at DEBUG. Secrets and long contents are shortened, and a
line of which that is true says so: the rest can be replayed (`replay.py`).
"""

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from handrail.kernel.host.state_dir import make_private
from handrail.ops.secrets import HIDDEN, hide_secrets, may_hold_secret, names_secret
from handrail.ops.text.display import one_line

_LEVELS = {"debug": 0, "info": 1, "off": 2}
_LONGEST_SECRET = 512
_TOLD_CHARS = 2000
"""The longest line that the user is told."""
_LONGEST_INTEGER = 4096
"""In bits: from about the fourfold on, Python refuses to write it out."""
# Neither a FIFO without a reader nor one that is full keeps anybody waiting.
_APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_encode = json.JSONEncoder(default=str).encode


def warn(line: str) -> None:
    """Tells the program that uses the library; where it says nothing else, that is a line on standard error."""
    import logging  # noqa: PLC0415  only where something is refused

    logging.getLogger("handrail").warning("%s", line)


def only_log(_line: str) -> None:
    """Tells nobody: the session log has the line, and where this is used nothing is to be loosened."""


class _Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class SessionLog:
    """`about` is said once, with the first request: in which place, and by what, it is answered. `tell` hears what
    would allow a refused call: the user's way to loosen something, which no answer holds.
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
        self._count += 1
        if self._fd >= 0:
            line = {**self._about, "dialect": dialect, "tool": tool, "params": params}
            self._about = {}
            self._write("INFO", "request", self._count, line if call_id is None else line | {"id": call_id})
        return self._count

    def response(self, number: int, result: _Result) -> None:
        if self._fd >= 0 and self._level <= _LEVELS["debug"]:
            self._write("DEBUG", "response", number, {"result": result.to_dict()})

    def refusal(self, number: int, tool: str, allow: str) -> None:
        """Tells the user what would allow a call that was refused, in the log and wherever they look."""
        if self._fd >= 0:
            self._write("INFO", "refusal", number, {"tool": tool, "allow": allow})
        if self._tell is not None:
            self._tell(one_line(f"{tool}: {allow}", _TOLD_CHARS))

    def failure(self, number: int, tool: str, error: BaseException, event: str = "bug") -> None:
        """Where it was raised, which no answer says."""
        import traceback  # noqa: PLC0415  where nothing fails, nobody waits for it

        if self._fd >= 0:
            said = "".join(traceback.format_exception(error))[-self._chars :]  # its end says what happened
            self._write("ERROR", event, number, {"tool": tool, "traceback": said})

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
        except Exception:  # noqa: BLE001  a caller may hand on objects that cannot even be looked at
            line = _encode({**head, "shortened": True})
        with self._lock:
            try:
                rest = line.encode() + b"\n"
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError:
                self._end()  # a full disk, or a reader that is gone, must not stop the work; the log just ends here

    def _line(self, head: dict[str, Any], facts: dict[str, Any]) -> str:
        line = _plain(head | facts)
        # Most lines are short and plain. Where something is escaped, a secret's edge might not be seen.
        if 0 < len(line) <= self._chars and "\\" not in line and not may_hold_secret(line):
            return line
        short = shorten(facts, self._chars)
        return _encode({**head, **({"shortened": True} if short != facts else {}), **short})


def _plain(facts: dict[str, Any]) -> str:
    """As JSON; empty where no JSON can hold it: it has no end, or a key of an odd kind."""
    try:
        return _encode(facts)
    except (ValueError, TypeError, RecursionError):
        return ""


def shorten(value: Any, chars: int, depth: int = 20) -> Any:
    """The value as the log keeps it: long strings and deep nests cut, what looks like a secret hidden."""
    if isinstance(value, str):
        shown = hide_secrets(value[: chars + _LONGEST_SECRET])
        return shown if len(value) <= chars else f"{shown[:chars]}… ({len(value)} characters)"
    if isinstance(value, dict | list) and depth == 0:
        return "…"
    if isinstance(value, dict):
        return {shorten(str(key), chars): _item(key, each, chars, depth - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [shorten(each, chars, depth - 1) for each in value]
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    return value


def _item(key: Any, value: Any, chars: int, depth: int) -> Any:
    hidden = isinstance(value, str) and value and isinstance(key, str) and names_secret(key)
    return HIDDEN if hidden else shorten(value, chars, depth)
