"""Reads request bodies within limits on number, size and time; drops the oldest body first."""

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from starlette.types import Receive

    from handrail.model.limits import Limits


class TooLong(Exception):  # noqa: N818  becomes an answer to the client
    """The body is longer than a message may be."""


class GivenUp(Exception):  # noqa: N818  becomes an answer to the client
    """The body did not arrive in time, or newer bodies displaced it."""


class _Body:
    def __init__(self) -> None:
        self.data = bytearray()
        self.scope = anyio.CancelScope()


class Bodies:
    """Reads bodies and counts unfinished ones.

    If there are too many unfinished bodies, or their total size is too large, the oldest is dropped. A client that
    sends without delay finishes before others can displace it.
    """

    def __init__(self, limits: "Limits") -> None:
        self._limits = limits
        self._most = max(limits.http_bodies_bytes, limits.message_bytes)
        self._unfinished: dict[_Body, None] = {}  # used as an ordered set
        self._held = 0

    async def read(self, receive: "Receive", declared: str) -> bytes:
        """Read one body; `declared` is its Content-Length. Raises TooLong or GivenUp."""
        if declared.isdigit() and int(declared) > self._limits.message_bytes:
            raise TooLong
        body = _Body()
        self._unfinished[body] = None
        self._make_room()
        try:
            with body.scope:
                body.scope.deadline = anyio.current_time() + self._limits.request_seconds
                return await self._all(body, receive)
        finally:
            self._forget(body)
        raise GivenUp

    async def _all(self, body: _Body, receive: "Receive") -> bytes:
        while True:
            message = await receive()
            if body.scope.cancel_called or message["type"] == "http.disconnect":
                raise GivenUp  # the body is incomplete
            piece: bytes = message.get("body", b"")
            if len(body.data) + len(piece) > self._limits.message_bytes:
                raise TooLong
            body.data += piece
            self._held += len(piece)
            if not message.get("more_body", False):
                return bytes(body.data)
            self._make_room()

    def _make_room(self) -> None:
        while len(self._unfinished) > self._limits.http_bodies or self._held > self._most:
            oldest = next(iter(self._unfinished))
            self._forget(oldest)
            oldest.scope.cancel()

    def _forget(self, body: _Body) -> None:
        if body in self._unfinished:
            del self._unfinished[body]
            self._held -= len(body.data)
            body.data = bytearray()
