"""Writes and reads the messages between processes and the page's server: one JSON object a line."""

import base64
import json
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
LONGEST = 1 << 26
"""The longest line in bytes; a longer one ends the connection."""


class Later:
    """Holds a value that is read when the message is written, in the thread that sends it."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read


def _plain(value: object) -> Any:
    return value.read() if isinstance(value, Later) else str(value)


_encoder = json.JSONEncoder(separators=(",", ":"), default=_plain)


def encoded(message: Message) -> bytes:
    """Return the line of a message."""
    return _encoder.encode(message).encode() + b"\n"


def decoded(line: bytes) -> Message:
    """Return the message in a line. Raises ValueError if it is not one."""
    try:
        found = json.loads(line)
    except RecursionError:
        raise ValueError("the message is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("the message is not an object")  # noqa: TRY004  every unreadable line is a ValueError
    return found


def as_text(data: bytes) -> str:
    """Return bytes as a message carries them."""
    return base64.b64encode(data).decode()


def as_bytes(text: str) -> bytes:
    """Return the bytes that a message carries. Raises ValueError."""
    return base64.b64decode(text, validate=True)
