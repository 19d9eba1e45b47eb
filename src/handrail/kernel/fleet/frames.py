"""Sends JSON messages over a socket: each is its length in four bytes and its text. Nothing else is ever decoded."""

import json
import socket
import threading
from contextlib import suppress
from typing import Any

from handrail.model.fleet_limits import FRAME_BYTES

Json = dict[str, Any]
_SIZE = 4


class MessageTooLong(ValueError):  # noqa: N818  the caller words it
    """Says that a message has more bytes than the other side takes."""


class FrameSocket:
    """Holds one end of a connection between a fleet and a host."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._sending = sock, threading.Lock()

    @classmethod
    def inherited(cls, fd: int) -> "FrameSocket":
        """Return the end that this process inherited from the process that started it."""
        sock = socket.socket(fileno=fd)
        sock.set_inheritable(False)
        return cls(sock)

    def send(self, message: Json) -> None:
        """Send one message. Raises OSError if the other side is gone, and MessageTooLong."""
        self.send_text(json.dumps(message))

    def send_text(self, text: str) -> None:
        """Send one message that is JSON already."""
        data = text.encode("ascii")
        if len(data) > FRAME_BYTES:
            raise MessageTooLong(f"the message has more than {FRAME_BYTES} bytes")
        with self._sending:
            self._sock.sendall(len(data).to_bytes(_SIZE, "big") + data)

    def receive(self) -> Json | None:
        """Return the next message; None at the end. Raises ValueError for what is not a message."""
        try:
            size = int.from_bytes(self._exactly(_SIZE), "big")
            if size > FRAME_BYTES:
                raise ValueError(f"the message has more than {FRAME_BYTES} bytes")
            found = json.loads(self._exactly(size))
        except (EOFError, OSError):
            return None
        if not isinstance(found, dict):
            raise ValueError("the message is not an object")  # noqa: TRY004  a wrong value, not a wrong type
        return found

    def _exactly(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            part = self._sock.recv(min(left, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def forget(self) -> None:
        """Give up this process's handle, without an end of the connection: a forked process must not use it."""
        self._sock.close()

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets the end."""
        with suppress(OSError):  # the other side closed it first
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
