"""Who is calling: each client has sessions, terminals and a last command of its own."""

import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.elicitation import ask_the_client
from handrail.tools.router import ToolRouter

if TYPE_CHECKING:
    from handrail.workspace import ClientSession

CALLER = "handrail.caller"
"""In the scope of a request over HTTP: whose token it came with; empty if the server has none."""
SESSION = "handrail/session"
"""In `_meta` of a stateless request over HTTP: which of its sessions a client means."""


class Client:
    def __init__(self, offer: Offer, name: str) -> None:
        self.name = name
        self.running = 0
        self.workers = ThreadPoolExecutor(offer.limits.client_calls, "handrail")
        self.last_seen = time.monotonic()
        self._offer = offer
        self._sessions: dict[str, ClientSession] = {}
        self._routers: dict[str, ToolRouter] = {}

    def router(self, workspace: str) -> ToolRouter:
        """The tools in one workspace; its session begins with the first call."""
        if workspace not in self._routers:
            opened = self._sessions[workspace] = self._offer.workspaces[workspace].session(approver=ask_the_client)
            router = opened.tools(self._offer.dialect)
            self._routers[workspace] = router.only(*(name for name in router.tools if name in self._offer.tools))
        return self._routers[workspace]

    def any_router(self) -> ToolRouter:
        return self.router(next(iter(self._offer.workspaces)))

    async def close(self) -> None:
        self.workers.shutdown(wait=False)
        sessions, self._sessions, self._routers = self._sessions, {}, {}
        for session in sessions.values():
            await to_thread.run_sync(session.close)


class Clients:
    """A connection with a handshake is one client. Without one, a pipe is, and over HTTP the credential with the
    session that the request names; such a client is forgotten when it has been silent for long.
    """

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._known: dict[str, Client] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Clients"]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._forget_silent)
            try:
                yield self
            finally:
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    for client in [*self._known.values()]:
                        await client.close()
                self._known.clear()

    def of(self, context: Any) -> Client:
        connection = context.session._connection  # noqa: SLF001  the SDK hands it to nobody, but keeps its state there
        if not connection.protocol_version >= "2026":
            return self._of_connection(connection)
        name = "pipe"
        if context.request is not None:
            session = (context.meta or {}).get(SESSION, "")
            name = f"{context.request.scope.get(CALLER, '')}/{session}"
        client = self._known.get(name)
        if client is None:
            client = self._known[name] = Client(self._offer, name)
        client.last_seen = time.monotonic()
        return client

    def _of_connection(self, connection: Any) -> Client:
        client: Client | None = connection.state.get("handrail")
        if client is None:
            client = connection.state["handrail"] = Client(self._offer, connection.session_id or "pipe")
            connection.exit_stack.push_async_callback(client.close)
        return client

    async def _forget_silent(self) -> None:
        seconds = self._offer.limits.idle_seconds
        while True:
            await anyio.sleep(seconds / 4)
            silent = time.monotonic() - seconds
            for name, client in [*self._known.items()]:
                if name != "pipe" and not client.running and client.last_seen < silent:
                    del self._known[name]
                    await client.close()
