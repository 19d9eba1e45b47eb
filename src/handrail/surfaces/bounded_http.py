"""Bounds the connections of an HTTP server, and lets a signal stop it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from handrail.model.limits import Limits


class StoppableServer(uvicorn.Server):
    """Stops on a signal, so that its caller can close what is open."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal as uvicorn does, but do not raise it again: the caller must still close the workspaces."""
        old = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in old.items():
                signal.signal(each, handler)


class BoundedProtocol(H11Protocol):
    """Limits how long a connection may stay silent, and how many silent connections there are."""

    limits: "Limits"
    silent: "dict[BoundedProtocol, asyncio.TimerHandle]"

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()  # the request is not complete yet
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self in self.silent or self.transport.is_closing():
            return
        self.silent[self] = self.loop.call_later(self.limits.request_seconds, self.give_up)
        if len(self.silent) > self.limits.http_silent:
            next(iter(self.silent)).give_up()

    def _stop_waiting(self) -> None:
        if timer := self.silent.pop(self, None):
            timer.cancel()

    def give_up(self) -> None:
        """Answer with a timeout and close the connection."""
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()


def bounded_protocol(limits: "Limits") -> type[BoundedProtocol]:
    """Return a protocol class for one server, with its own limits and connections."""
    return type("BoundedProtocol", (BoundedProtocol,), {"limits": limits, "silent": {}})
