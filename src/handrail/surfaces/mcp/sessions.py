"""Finds the client of a request; each client has its own sessions, terminals and last command."""

import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_REQUEST

from handrail.errors import UndoError
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.elicitation import ask_the_client
from handrail.tools.router import ToolRouter

if TYPE_CHECKING:
    from handrail.client_session import ClientSession

CALLER = "handrail.caller"
"""The key in the scope of an HTTP request that names the token of the caller; empty if the server has no tokens."""
SESSION = "handrail/session"
"""The key in `_meta` of a stateless HTTP request that names one session of the client."""

MARK = "handrail/mark"
"""The key in `_meta` of a call that names a mark, such as the turn of the user: it is set before the call."""
_NAME_CHARS = 200
"""The longest name of a session: the server keeps it as long as the session."""


class Client:
    """Holds the sessions, routers and worker threads of one client."""

    def __init__(self, offer: Offer, name: str) -> None:
        self.name = name
        self.running = 0
        self.workers = ThreadPoolExecutor(offer.limits.client_calls, "handrail")
        self.last_seen = time.monotonic()
        self._offer = offer
        self._sessions: dict[str, ClientSession] = {}
        self._routers: dict[str, ToolRouter] = {}
        self._marks: dict[str, str] = {}

    def router(self, workspace: str) -> ToolRouter:
        """Return the router of one workspace; the first call opens its session."""
        if workspace not in self._routers:
            opened = self._sessions[workspace] = self._offer.workspaces[workspace].session(approver=ask_the_client)
            router = opened.tools(self._offer.dialect)
            self._routers[workspace] = router.only(*(name for name in router.tools if name in self._offer.tools))
        return self._routers[workspace]

    @property
    def sessions(self) -> "dict[str, ClientSession]":
        """The open sessions of the client, by workspace."""
        return {**self._sessions}

    def set_mark(self, workspace: str, name: str) -> None:
        """Set a mark in the history, unless it is the last one that this client has set there."""
        if self._marks.get(workspace) != name:
            self._marks[workspace] = name
            with suppress(UndoError):  # the journal is off: the call goes on, and there is nothing to undo
                self._sessions[workspace].mark(name)

    def any_router(self) -> ToolRouter:
        """Return the router of the first workspace."""
        return self.router(next(iter(self._offer.workspaces)))

    async def close(self) -> None:
        """Close all sessions of the client."""
        self.workers.shutdown(wait=False)
        sessions, self._sessions, self._routers = self._sessions, {}, {}
        for session in sessions.values():
            await to_thread.run_sync(session.close)


class Clients:
    """Finds or creates the client of a request.

    A connection with a handshake is one client. Without a handshake, a pipe is one client; over HTTP a client is one
    token and the session that the request names. Such an HTTP client is closed after it was idle for too long.
    """

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._known: dict[str, Client] = {}

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
                        await client.close()
                self._known.clear()

    def of(self, context: Any) -> Client:
        """Return the client of a request."""
        connection = context.session._connection  # noqa: SLF001  the SDK has no public name for it
        if not connection.protocol_version >= "2026":
            return self._of_connection(connection)
        name = "pipe"
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
            client = self._known[name] = Client(self._offer, name)
        client.last_seen = time.monotonic()
        return client

    def _of_connection(self, connection: Any) -> Client:
        client: Client | None = connection.state.get("handrail")
        if client is None:
            client = connection.state["handrail"] = Client(self._offer, connection.session_id or "pipe")
            connection.exit_stack.push_async_callback(client.close)
        return client

    async def _close_idle(self) -> None:
        seconds = self._offer.limits.idle_seconds
        while True:
            await anyio.sleep(seconds / 4)
            oldest = time.monotonic() - seconds
            for name, client in [*self._known.items()]:
                if name != "pipe" and not client.running and client.last_seen < oldest:
                    del self._known[name]
                    await client.close()
