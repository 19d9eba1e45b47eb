"""Holds what belongs to one MCP client: its sessions, with their terminals and last command, and its marks."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.errors import UndoError
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.elicitation import ask_the_client
from handrail.tools.router import ToolRouter

if TYPE_CHECKING:
    from handrail.library.client_session import ClientSession

PIPE = "pipe"
"""The name of the client at the other end of a pipe."""


class Client:
    """Holds the sessions and routers of one client, which several threads use."""

    def __init__(self, offer: Offer, name: str) -> None:
        self.name = name
        self._offer = offer
        self._lock = threading.Lock()
        self._sessions: dict[str, ClientSession] = {}
        self._routers: dict[str, ToolRouter] = {}
        self._marks: dict[str, str] = {}

    def router(self, workspace: str) -> ToolRouter:
        """Return the router of one workspace; the first call opens its session."""
        with self._lock:
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
        with self._lock:
            if self._marks.get(workspace) != name:
                self._marks[workspace] = name
                with suppress(UndoError):  # the journal is off: the call goes on, and there is nothing to undo
                    self._sessions[workspace].mark(name)

    def any_router(self) -> ToolRouter:
        """Return the router of the first workspace."""
        return self.router(next(iter(self._offer.workspaces)))

    def close(self) -> None:
        """Close all sessions of the client."""
        with self._lock:
            sessions, self._sessions, self._routers = self._sessions, {}, {}
        for session in sessions.values():
            session.close()
