"""The session log: JSON lines, requests at INFO, responses at DEBUG. Secrets and long contents are shortened, and a
line of which that is true says so: the rest can be replayed (`replay.py`).
"""

import json
import os
import re
import threading
import time
from typing import Any, Protocol

from handrail.kernel.state import make_private

_LEVELS = {"debug": 0, "info": 1, "off": 2}
_SECRET = re.compile(
    r"(?i)\b(sk-[\w-]{16,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|xox[abpr]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
    r"|((?:api[_-]?key|token|secret|password|passwd|authorization)[\"']?\s*[:=]\s*(?:bearer\s+)?[\"']?)[^\s\"',;]{6,}"
)
# One of these is in everything that `_SECRET` finds, and they are found fifty times as fast.
_HINTS = (
    *("sk-", "gho_", "ghp_", "ghs_", "ghu_", "github_pat_", "xox", "akia", "eyj"),
    *("key", "token", "secret", "passw", "authorization"),
)
_LONGEST_SECRET = 512
_LONGEST_NUMBER_BITS = 1024
_encode = json.JSONEncoder(default=str).encode


class _Result(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class SessionLog:
    """`about` is said once, with the first request: in which place, and by what, it is answered."""

    def __init__(
        self, path: str | None, *, level: str, chars: int, session: str, about: dict[str, str] | None = None
    ) -> None:
        self._about = about or {}
        self._chars, self._session, self._count = chars, session, 0
        self._level = _LEVELS[level] if path else _LEVELS["off"]
        self.path = path
        self._fd, self._lock = -1, threading.Lock()
        if path and level != "off":
            make_private(os.path.dirname(os.path.abspath(path)))
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

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

    def failure(self, number: int, tool: str, error: BaseException, event: str = "bug") -> None:
        """Where it was raised, which no answer says."""
        import traceback  # noqa: PLC0415  where nothing fails, nobody waits for it

        if self._fd >= 0:
            said = "".join(traceback.format_exception(error))[-self._chars :]  # its end says what happened
            self._write("ERROR", event, number, {"tool": tool, "traceback": said})

    def close(self) -> None:
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    def _write(self, level: str, event: str, number: int, facts: dict[str, Any]) -> None:
        head = {"time": round(time.time(), 6), "level": level, "event": event, "session": self._session}
        line = _plain({**head, "call": number, **facts})
        # Most lines are short and plain. Where something is escaped, a secret's edge might not be seen.
        if not 0 < len(line) <= self._chars or "\\" in line or _may_hold_secret(line):
            short = shorten(facts, self._chars)
            mark = {"shortened": True} if short != facts else {}
            line = _encode({**head, "call": number, **mark, **short})
        try:
            with self._lock:  # the number of a handle that is being closed may become another file's
                if self._fd >= 0:
                    os.write(self._fd, line.encode() + b"\n")
        except OSError:
            self.close()  # a full disk must not stop the work; the log just ends here


def _plain(facts: dict[str, Any]) -> str:
    """As JSON; empty where no JSON can hold it: it has no end, or a key of an odd kind."""
    try:
        return _encode(facts)
    except (ValueError, TypeError, RecursionError):
        return ""


def _may_hold_secret(text: str) -> bool:
    return any(map(text.lower().__contains__, _HINTS))


def shorten(value: Any, chars: int, depth: int = 20) -> Any:
    """The value as the log keeps it: long strings and deep nests cut, what looks like a secret hidden."""
    if isinstance(value, str):
        shown = value[: chars + _LONGEST_SECRET]
        if _may_hold_secret(shown):
            shown = _SECRET.sub(lambda match: f"{match[2] or ''}[hidden]", shown)
        return shown if len(value) <= chars else f"{shown[:chars]}… ({len(value)} characters)"
    if isinstance(value, dict | list) and depth == 0:
        return "…"
    if isinstance(value, dict):
        return {shorten(str(key), chars): shorten(each, chars, depth - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [shorten(each, chars, depth - 1) for each in value]
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER_BITS:
        return f"… (a number of {value.bit_length()} bits)"
    return value
