"""Runs the page's server: one a user, on a free port of the loopback interface."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING

import uvicorn

from handrail.kernel.host.line_channel import raise_file_limit
from handrail.kernel.page.page_files import page_files
from handrail.kernel.page.page_listener import PageListener, Process, loopback_socket
from handrail.kernel.page.page_messages import Message
from handrail.kernel.page.page_place import serve_here
from handrail.model.limits import Limits
from handrail.model.page_limits import PAGE_LIMITS
from handrail.surfaces.bounded_http import StoppableServer, bounded_protocol
from handrail.surfaces.page.page_access import PageAccess, PageDoor
from handrail.surfaces.page.page_app import PageApp, application
from handrail.surfaces.page.page_history import PageHistory
from handrail.surfaces.page.page_hub import PageHub
from handrail.surfaces.page.page_rules import PageRules

if TYPE_CHECKING:
    from socket import socket  # noqa: TID251  for a type
    from types import FrameType

_STEP_SECONDS = 1.0


class _PageHttp(StoppableServer):
    """Sleeps until a signal or `end()`, and lets the browsers go before it ends."""

    def __init__(self, hub: PageHub, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._hub = hub
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn would look ten times a second."""
        await self.on_tick(0)
        await self._ended.wait()

    def handle_exit(self, sig: int, frame: "FrameType | None") -> None:
        """End: a signal came, which does not wake the event loop."""
        super().handle_exit(sig, frame)
        self._loop.call_soon_threadsafe(self._ended.set)

    def end(self) -> None:
        """End the server."""
        self.should_exit = True
        self._ended.set()

    async def shutdown(self, sockets: "list[socket] | None" = None) -> None:
        self._hub.ring.close()
        await super().shutdown(sockets)


class PageServer:
    """Holds the server's parts."""

    def __init__(self, listener: PageListener, limits: Limits) -> None:
        self._listener, self._limits = listener, limits
        self._socket = loopback_socket()
        self.port: int = self._socket.getsockname()[1]
        self._door = PageDoor(PAGE_LIMITS.token_seconds)

    def address(self) -> str:
        """Return a new address, which opens the page once. The token is in the fragment, which browsers do not send."""
        return f"http://127.0.0.1:{self.port}/#{self._door.new_token()}"

    def run(self, tell: Callable[[str], None], *, ends_when_idle: bool) -> None:
        """Serve until a signal comes; tell the first address."""
        raise_file_limit()
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each event for a browser that has gone
        asyncio.run(self._run(tell, ends_when_idle=ends_when_idle))

    async def _run(self, tell: Callable[[str], None], *, ends_when_idle: bool) -> None:
        serve_here()
        hub = PageHub(self._limits)
        app = PageApp(
            hub, self._door, page_files(str(files("handrail.surfaces.page") / "static")), f"handrail-{self.port}"
        )
        access = PageAccess(
            application([*app.routes(), *PageHistory(hub).routes(), *PageRules(hub).routes()]),
            self._door,
            self.port,
            self._limits,
        )
        server = _PageHttp(
            hub,
            uvicorn.Config(
                access,
                http=bounded_protocol(self._limits),
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=int(self._limits.request_seconds),
            ),
        )

        def joined(process: Process) -> Callable[[Message], None]:
            take = hub.joined(process)

            def taken(message: Message) -> None:
                if message.get("type") == "address":
                    hub.note_user()
                    process.send({"address": self.address()})
                else:
                    take(message)

            return taken

        accepting = asyncio.create_task(self._listener.serve(joined, hub.left))
        watching = asyncio.create_task(self._watch(hub, server, ends_when_idle=ends_when_idle))
        hub.note_user()
        tell(self.address())
        try:
            await server.serve(sockets=[self._socket])
        finally:
            for task in (accepting, watching):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _watch(self, hub: PageHub, server: _PageHttp, *, ends_when_idle: bool) -> None:
        """Tell processes when the last user has left for long; end a server that nothing uses."""
        watched = hub.watched
        while True:
            await asyncio.sleep(_STEP_SECONDS)
            if watched != hub.watched:
                watched = hub.watched
                hub.tell_watched()
            used = hub.browsers or hub.connected
            if ends_when_idle and not used and time.monotonic() > hub.busy_at + PAGE_LIMITS.idle_seconds:
                server.end()
