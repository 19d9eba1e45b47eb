"""Finds the client of a request that comes through the SDK; over HTTP a server has many."""

import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import to_thread
from mcp.shared.exceptions import MCPError

from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.mcp_protocol import INVALID_REQUEST, STATELESS_VERSIONS
from handrail.surfaces.mcp.sessions import PIPE, Client

CALLER = "handrail.caller"
"""The key in the scope of an HTTP request that names the token of the caller; empty if the server has no tokens."""
SESSION = "handrail/session"
"""The key in `_meta` of a stateless HTTP request that names one session of the client."""
_NAME_CHARS = 200
"""The longest name of a session: the server keeps it as long as the session."""


class SdkClient(Client):
    """Holds a client and its own worker threads; the server closes it after it was idle for too long."""

    def __init__(self, offer: Offer, name: str) -> None:
        super().__init__(offer, name)
        self.running = 0
        self.workers = ThreadPoolExecutor(offer.limits.client_calls, "handrail")
        self.last_seen = time.monotonic()

    async def end(self) -> None:
        """Close all sessions of the client."""
        self.workers.shutdown(wait=False)
        await to_thread.run_sync(self.close)


class Clients:
    """Finds or creates the client of a request.

    A connection with a handshake is one client. Without a handshake, a pipe is one client; over HTTP a client is one
    token and the session that the request names. Such an HTTP client is closed after it was idle for too long.
    """

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._known: dict[str, SdkClient] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Clients"]:
        """Close idle clients while the server runs, and all clients at its end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._close_idle)
            try:
                yield self
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    for client in [*self._known.values()]:
                        await client.end()
                self._known.clear()

    def of(self, context: Any) -> SdkClient:
        """Return the client of a request."""
        connection = context.session._connection  # noqa: SLF001  the SDK has no public name for it
        if connection.protocol_version not in STATELESS_VERSIONS:
            return self._of_connection(connection)
        name = PIPE
        if context.request is not None:
            session = (context.meta or {}).get(SESSION, "")
            if not isinstance(session, str) or len(session) > _NAME_CHARS:
                raise MCPError(INVALID_REQUEST, f"{SESSION} must be a string of at most {_NAME_CHARS} characters")
            name = f"{context.request.scope.get(CALLER, '')}/{session}"
        client = self._known.get(name)
        if client is None:
            most = self._offer.limits.http_sessions
            if len(self._known) >= most:
                raise MCPError(INVALID_REQUEST, f"The server has {most} sessions already; use one of yours again")
            client = self._known[name] = SdkClient(self._offer, name)
        client.last_seen = time.monotonic()
        return client

    def _of_connection(self, connection: Any) -> SdkClient:
        client: SdkClient | None = connection.state.get("handrail")
        if client is None:
            client = connection.state["handrail"] = SdkClient(self._offer, connection.session_id or PIPE)
            connection.exit_stack.push_async_callback(client.end)
        return client

    async def _close_idle(self) -> None:
        seconds = self._offer.limits.idle_seconds
        while True:
            await anyio.sleep(seconds / 4)
            oldest = time.monotonic() - seconds
            for name, client in [*self._known.items()]:
                if name != PIPE and not client.running and client.last_seen < oldest:
                    del self._known[name]
                    await client.end()
