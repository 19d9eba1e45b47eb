"""Defines what every engine for hosts offers: starting a host, reaching it, and reporting its death."""

from collections.abc import Callable
from typing import Any, Protocol

from handrail.errors import HandrailError

Json = dict[str, Any]
Reply = Callable[[Any, HandrailError | None], None]
"""Takes the value of a request, or the error that it ended with. Is called once."""


class HostLink(Protocol):
    """Reaches one running host."""

    node: str
    """The machine, or the part of a cluster, that the host runs on."""
    name: str
    """The host in reports and messages."""

    def begin(self, request: Json, reply: Reply) -> None:
        """Send a request. If the host dies, the reply is a HostDiedError."""

    def provide(self, tree: str, pack: str) -> None:
        """Bring a tree to the node of the host, unless it is there. Raises HostDiedError and TreeError."""

    def close(self, *, at_once: bool = False) -> None:
        """End the host with all its workspaces. Requests that are under way get a HostDiedError."""


class HostWatcher(Protocol):
    """Hears what happens in hosts."""

    def heard(self, event: Json) -> None:
        """Take an event of a host."""

    def died(self, link: HostLink) -> None:
        """Take note that a host died."""


class HostEngine(Protocol):
    """Starts hosts."""

    def nodes(self) -> list[tuple[str, int]]:
        """Return the nodes that can run hosts now, each with its number of processors."""

    def start(self, node: str, watcher: HostWatcher) -> HostLink:
        """Start a host on a node; return when it answers. Raises FleetError."""

    def expect_closed(self, sandbox: str) -> None:
        """Refuse a sandbox level at which commands reach what starts hosts. Raises FleetError."""

    def trouble(self) -> str:
        """Return what keeps the engine from starting hosts, in one sentence; empty if nothing does."""

    def close(self) -> None:
        """Release what the engine holds."""
