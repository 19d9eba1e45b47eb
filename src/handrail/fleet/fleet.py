"""Gives programs a fleet: `Fleet("local")` or `Fleet("ray", address="auto")` holds workspaces in hosts."""

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from handrail.errors import ClosedError, did_you_mean
from handrail.fleet.fleet_errors import FleetError
from handrail.fleet.fleet_workspace import FleetSnapshot, FleetWorkspace
from handrail.fleet.ledger import Ledger
from handrail.fleet.local_engine import LocalEngine
from handrail.fleet.pool import HostPool, HostSlot
from handrail.kernel.fleet import run_files
from handrail.kernel.fleet.node_directory import FleetPlace
from handrail.model import fleet_limits

if TYPE_CHECKING:
    from handrail.fleet.episode import Episode
    from handrail.fleet.episode_runs import Done
    from handrail.fleet.host_engine import HostEngine

Json = dict[str, Any]
RAY_OPTIONS = ("address", "host_cpus", "shared", "allow_open_cluster", "allow_exposed_cluster")
SETTINGS: Json = {"approve": "auto", "sandbox": "strict", "journal": "off", "durability": "none", "log_level": "off"}
"""The settings of workspaces in a fleet: each is thrown away in the end, and its saved states are its undo."""


class Fleet:
    """Holds many workspaces in a few host processes. Use it in a `with` statement, or close it.

    Args:
        engine: What runs the hosts: `local` for processes on this machine, `ray` for a Ray cluster.
        hosts: How many hosts; one for every two processors if not given.
        per_host: The most workspaces of one host.
        sandbox: What confines commands: `strict`, `network` or `off`.
        checkpoint_calls: After how many calls a workspace is saved outside its host; 0 for never.
        settings: More settings of the workspaces, by name.
        directory: Where hosts keep trees and workspaces on their nodes; below the state directory if not given.
        address: For `ray`: the cluster. `auto` finds the one that this machine belongs to.
        host_cpus: For `ray`: how many processors Ray reserves for a host.
        shared: For `ray`: a directory that all nodes see; trees travel there instead of through the object store.
        allow_open_cluster: For `ray`: use a cluster that asks for no token.
        allow_exposed_cluster: For `ray`: let commands have a sandbox level that can reach the ports of the cluster.

    Raises:
        FleetError: No host starts.

    """

    def __init__(
        self,
        engine: str = "local",
        *,
        hosts: int | None = None,
        per_host: int = fleet_limits.PER_HOST,
        sandbox: str = "strict",
        checkpoint_calls: int = fleet_limits.CHECKPOINT_CALLS,
        settings: Mapping[str, Any] | None = None,
        directory: str | None = None,
        **options: Any,
    ) -> None:
        self.per_host, self.checkpoint = per_host, checkpoint_calls
        self.settings = {**SETTINGS, "sandbox": sandbox, **(settings or {})}
        chosen = _engine(engine, run_files.absolute(directory) if directory else None, options)
        self._pool = HostPool(chosen, hosts, per_host, self._heard)
        self._place = FleetPlace(directory)
        self._packs: dict[str, str] = {}
        self._open: dict[str, FleetWorkspace] = {}
        self._ledgers: dict[str, Callable[[Json], None]] = {}
        self._lock = threading.Lock()
        self._name, self._number = secrets.token_hex(4), 0
        self.calls_made = 0
        self._closed = False
        try:
            chosen.expect_closed(self.settings["sandbox"])
            self._pool.begin()
        except BaseException:
            self.close()
            raise

    # ── trees ──

    def tree(self, path: str) -> str:
        """Pack a directory; return its content id. Each node gets it once. Raises FleetError and OSError."""
        made, pack = self._place.pack(path)
        self._packs.setdefault(made, pack)
        return made

    def empty_tree(self) -> str:
        """Return the id of a tree with nothing in it."""
        made, pack = self._place.pack(None)
        self._packs.setdefault(made, pack)
        return made

    def provide(self, slot: HostSlot, tree: str) -> None:
        """Bring a tree to the node of a host."""
        if tree not in self._packs:
            raise FleetError(f"the fleet has no tree {tree}", "Make it with fleet.tree(path)")
        self._pool.provide(slot, tree, self._packs[tree])

    # ── workspaces ──

    def open(self, start: "str | FleetSnapshot", **settings: Any) -> FleetWorkspace:
        """Open a workspace of a tree, or one that begins with a snapshot. Raises FleetError."""
        snapshot = start if isinstance(start, FleetSnapshot) else None
        tree = snapshot.tree if snapshot else str(start)
        ledger = Ledger(tree, snapshot.state if snapshot else None)
        chosen = {**self.settings, **settings}
        self._pool.engine.expect_closed(chosen["sandbox"])
        made = FleetWorkspace(self, self.new_name(), ledger, chosen)
        with self._lock:
            self._open[made.name] = made
        try:
            return made.open()
        except BaseException:
            made.close()
            raise

    def map(
        self,
        episode: "str | Episode",
        tasks: Iterable[Mapping[str, Any]],
        *,
        tree: str | None = None,
        retries: int = 0,
        seconds: float | None = None,
        on_event: Callable[[Json], None] | None = None,
    ) -> "Iterator[Done]":
        """Run an episode for each task, in the host of its workspace; yield the results as they come.

        Args:
            episode: `package:function`, or a function that hosts can import. It gets a workspace and a task.
            tasks: JSON objects. `tree` names the tree of a task, if not all have the same.
            tree: The tree of the tasks that name none.
            retries: How often an episode that raises an exception runs again, from its beginning.
            seconds: How long a task may take from its first begin; then its workspace closes, and it has failed.
            on_event: Is called with each call of an episode, and with what happens to it.

        """
        from handrail.fleet.episode_runs import EpisodeRuns  # noqa: PLC0415  not every fleet runs episodes

        return EpisodeRuns(self, self._pool, episode, tree, retries, seconds, on_event).run(tasks)

    def new_name(self) -> str:
        """Return a name for a workspace."""
        with self._lock:
            if self._closed:
                raise ClosedError("the fleet is closed")
            self._number += 1
            return f"{self._name}-{self._number}"

    def forget(self, workspace: FleetWorkspace) -> None:
        """Drop a closed workspace."""
        with self._lock:
            self._open.pop(workspace.name, None)

    # ── hosts ──

    def take_slot(self, tree: str) -> HostSlot:
        """Reserve a place for a workspace; wait for one."""
        slot = self._pool.take(tree)
        if slot is None:
            raise FleetError("no host has room")
        return slot

    def give_back(self, slot: HostSlot, *, busy: str = "") -> None:
        """Free the place of a workspace; `busy` says why the host had no room for it."""
        self._pool.give_back(slot, busy=busy)

    def count_calls(self, n: int) -> None:
        with self._lock:
            self.calls_made += n

    def listen(self, workspace: str, listener: Callable[[Json], None] | None) -> None:
        """Send the events of a workspace to a function; to none if it is None."""
        with self._lock:
            if listener is None:
                self._ledgers.pop(workspace, None)
            else:
                self._ledgers[workspace] = listener

    def _heard(self, event: Json) -> None:
        listener = self._ledgers.get(event.get("workspace", ""))
        if listener is not None:
            listener(event)

    @property
    def host_deaths(self) -> int:
        """How many hosts have died so far."""
        return self._pool.deaths

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts that run now."""
        return [slot.link.name for slot in [*self._pool.slots]]

    def trouble(self) -> str:
        """Return what keeps hosts from starting, or workspaces from opening on them; empty if nothing does."""
        return self._pool.engine.trouble() or self._pool.why_full()

    @property
    def copied(self) -> str:
        """Why workspaces are copies of their trees on a host that has no overlays; empty if all hosts have them."""
        return next((slot.copied for slot in [*self._pool.slots] if slot.copied), "")

    # ── the end ──

    def close(self) -> None:
        """Close all workspaces, end all hosts, and remove what they kept."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            workspaces = [*self._open.values()]
        for each in workspaces:
            each.close()
        self._pool.close()
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _engine(name: str, directory: str | None, options: Json) -> "HostEngine":
    """Return an engine. Raises FleetError for an unknown name or option."""
    known = {"local": (), "ray": RAY_OPTIONS}
    if name not in known:
        raise FleetError(f"unknown engine {name}{did_you_mean(name, known)}", f"Use {' or '.join(known)}")
    if unknown := options.keys() - {*known[name]}:
        raise FleetError(f"the engine {name} has no option {min(unknown)}")
    if name == "local":
        return LocalEngine(directory)
    from handrail.fleet.ray_engine import RayEngine  # noqa: PLC0415  an extra

    return RayEngine(directory, **options)
