"""Serves MCP over Streamable HTTP to many clients, each with its own sessions."""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from handrail.kernel.host.line_channel import raise_file_limit
from handrail.surfaces.bounded_http import StoppableServer, bounded_protocol
from handrail.surfaces.mcp.http_access import HttpAccess, is_loopback

if TYPE_CHECKING:
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
            http=bounded_protocol(limits),
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


class _Server(StoppableServer):
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
