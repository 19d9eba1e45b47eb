"""Runs hosts as child processes on this machine: no cluster, no other package."""

from typing import TYPE_CHECKING

from handrail.fleet.child_link import ChildLink, asked
from handrail.kernel.fleet.host_process import HostProcess
from handrail.kernel.fleet.node_directory import clear_killed, new_host, node_home
from handrail.kernel.fleet.node_room import processors
from handrail.model.fleet_limits import START_SECONDS

if TYPE_CHECKING:
    from handrail.fleet.host_engine import HostWatcher, Json, Reply

LOCAL = "local"


class LocalEngine:
    """Starts hosts on this machine."""

    def __init__(self, directory: str | None) -> None:
        self.node_home = node_home(directory)

    def nodes(self) -> list[tuple[str, int]]:
        return [(LOCAL, processors())]

    def start(self, node: str, watcher: "HostWatcher") -> "LocalLink":
        """Start a host; return when it answers."""
        link = LocalLink(HostProcess(new_host(self.node_home)), node, watcher)
        asked(link, {"op": "ping"}, START_SECONDS)
        return link

    def expect_closed(self, sandbox: str) -> None:
        """Allow every level: hosts are reached over a socket that no command can name."""

    def trouble(self) -> str:
        return ""

    def close(self) -> None:
        """Remove what killed hosts left."""
        clear_killed(self.node_home)


class LocalLink:
    """Reaches a host that is a child of the fleet's own process."""

    def __init__(self, child: HostProcess, node: str, watcher: "HostWatcher") -> None:
        self.node, self.name, self.pid = node, f"{node}-{child.pid}", child.pid
        self._link = ChildLink(child, watcher.heard, lambda: watcher.died(self))

    def begin(self, request: "Json", reply: "Reply") -> None:
        self._link.begin(request, reply)

    def provide(self, tree: str, pack: str) -> None:
        """Let the host unpack a tree, unless the node has it."""
        asked(self, {"op": "tree", "tree": tree, "path": pack})

    def close(self, *, at_once: bool = False) -> None:
        self._link.close(at_once=at_once)
