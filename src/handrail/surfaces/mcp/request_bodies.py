"""Request bodies on their way in: bounded in number, size and time, the oldest given up first."""

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from starlette.types import Receive

    from handrail.model.limits import Limits


class TooLong(Exception):  # noqa: N818  an answer to the client
    pass


class GivenUp(Exception):  # noqa: N818  the same
    pass


class _Body:
    def __init__(self) -> None:
        self.data = bytearray()
        self.scope = anyio.CancelScope()


class Bodies:
    """Reads bodies, and counts those that are unfinished. Where they are too many, or hold too much together, the
    oldest is given up: a client that sends without delay is done before others can push it out.
    """

    def __init__(self, limits: "Limits") -> None:
        self._limits = limits
        self._most = max(limits.http_bodies_bytes, limits.message_bytes)
        self._unfinished: dict[_Body, None] = {}  # a set that keeps its order
        self._held = 0

    async def read(self, receive: "Receive", told: str) -> bytes:
        """All of one body; `told` is how long its sender says it is. Raises TooLong or GivenUp."""
        if told.isdigit() and int(told) > self._limits.message_bytes:
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
                raise GivenUp  # what it has is not all of it
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
