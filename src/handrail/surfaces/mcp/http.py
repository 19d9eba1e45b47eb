"""Serves MCP over Streamable HTTP to many clients, each with its own sessions."""

import math
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.kernel.host.line_channel import raise_file_limit
from handrail.surfaces.mcp.http_access import HttpAccess, is_loopback

if TYPE_CHECKING:
    import asyncio

    from mcp.server.lowlevel import Server

    from handrail.model.limits import Limits

PATH = "/mcp"


class BadAddress(Exception):  # noqa: N818  its text is a message for the user
    """The address is invalid, or needs a token."""


def serve_http(
    server: "Server[Any]",
    limits: "Limits",
    address: str,
    tokens: Sequence[str] = (),
    hosts: Sequence[str] = (),
    *,
    shown: str = "",
) -> None:
    """Serve until a signal stops the server.

    `shown` is a new token to print for the user. Without tokens every process that can connect may call, and calls that
    need approval are refused.
    """
    host, port = split_address(address)
    if not is_loopback(host) and not tokens:
        raise BadAddress(f"{host} is not a loopback address: the server needs a bearer token")
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=limits.message_bytes,
        session_idle_timeout=limits.idle_seconds,
        max_sessions=limits.http_sessions,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        ),  # HttpAccess checks hosts and origins
    )
    raise_file_limit()
    _Server(
        uvicorn.Config(
            HttpAccess(app, tokens, [*hosts, host], limits),
            host=host,
            port=port,
            http=_protocol(limits),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            # longer than clients keep an idle connection: one that both ends drop at once loses a request
            timeout_keep_alive=math.ceil(limits.request_seconds),
        ),
        shown,
    ).run()


def split_address(address: str) -> tuple[str, int]:
    """Split HOST:PORT; the default host is 127.0.0.1."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BadAddress(f"expected HOST:PORT, not {address!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


class _Server(uvicorn.Server):
    """Prints the address and a new token when the server starts."""

    def __init__(self, config: uvicorn.Config, token: str) -> None:
        super().__init__(config)
        self._token = token

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        host, port, *_ = self.servers[0].sockets[0].getsockname()
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"handrail: serving http://{shown}:{port}{PATH}\n")
        if self._token:
            sys.stderr.write(f"handrail: clients must send the header Authorization: Bearer {self._token}\n")
        sys.stderr.flush()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal as uvicorn does, but do not raise it again: the caller must still close the workspaces."""
        old = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for each, handler in old.items():
                signal.signal(each, handler)


class _BoundedProtocol(H11Protocol):
    """Limits how long a connection may stay silent, and how many silent connections there are."""

    limits: "Limits"
    silent: "dict[_BoundedProtocol, asyncio.TimerHandle]"

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


def _protocol(limits: "Limits") -> type[_BoundedProtocol]:
    """Return a protocol class for one server, with its own limits and connections."""
    return type("BoundedProtocol", (_BoundedProtocol,), {"limits": limits, "silent": {}})
