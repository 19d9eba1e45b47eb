"""Keeps hosts running: starts them spread over the nodes, replaces dead ones, and chooses one for each workspace."""

import threading
import time
from collections.abc import Callable
from typing import Any

from handrail.errors import HandrailError
from handrail.fleet.child_link import asked
from handrail.fleet.fleet_errors import FleetError, HostDiedError
from handrail.fleet.host_engine import HostEngine, HostLink, Json
from handrail.model import fleet_limits


class HostSlot:
    """Holds what the pool knows about one host."""

    def __init__(self, link: HostLink) -> None:
        self.link = link
        self.used = 0
        self.trees: set[str] = set()
        self.busy_until, self.busy = 0.0, ""
        self.alive = True
        """False from the first sign that the host has ended, so that no workspace goes there any more."""
        self.providing = threading.Lock()
        self.heard = time.monotonic()
        self.copied = ""
        """Why the workspaces of this host are copies of their trees; empty if they are overlays."""

    def pinged(self, value: Any, error: HandrailError | None) -> None:
        """Note that the host lives."""
        if error is None:
            self.heard, self.copied = time.monotonic(), value["copied"]

    def ask(self, request: Json) -> Any:
        """Send a request and wait for its value."""
        if not self.alive:
            raise HostDiedError("the host died")
        try:
            return asked(self.link, request)
        except HostDiedError:
            self.alive = False
            raise


class HostPool:
    """Keeps the hosts of a fleet."""

    def __init__(self, engine: HostEngine, wanted: int | None, per_host: int, on_event: Callable[[Json], None]) -> None:
        self.engine, self.per_host = engine, per_host
        self._on_event = on_event
        self._wanted = wanted or sum(-(-each // fleet_limits.PROCESSORS_PER_HOST) for _, each in engine.nodes())
        self.changed = threading.Condition(threading.RLock())
        self.slots: list[HostSlot] = []
        self.deaths = 0
        self._starting, self._closed = 0, False
        self._trouble = ""
        self._starting_on: list[str] = []
        self._avoided: dict[str, float] = {}
        self._early: set[int] = set()
        self._alive_at = time.monotonic()
        self._pings = threading.Thread(target=self._ping, name="handrail-pings", daemon=True)
        self._stopping = threading.Event()

    def begin(self) -> None:
        """Start the hosts; return when the first one answers. Raises FleetError if none starts."""
        self._fill()
        self._pings.start()
        with self.changed:
            self.changed.wait_for(lambda: self.slots or not self._starting)
            if not self.slots:
                raise FleetError(self._trouble or "no host starts")

    def _fill(self) -> None:
        """Start as many hosts as are missing, each in a thread."""
        with self.changed:
            if self._closed:
                return
            missing = self._wanted - len(self.slots) - self._starting
            self._starting += max(0, missing)
        for _ in range(missing):
            threading.Thread(target=self._start, name="handrail-start", daemon=True).start()

    def _start(self) -> None:
        node, link = "", None
        try:
            node = self._next_node()
            link = self.engine.start(node, self)
        except HandrailError as error:
            self._trouble = str(error)
        with self.changed:
            if node:
                self._starting_on.remove(node)
            if link is None:
                self._avoid(node)
            elif not self._closed and id(link) not in self._early:
                self.slots.append(HostSlot(link))
                link.begin({"op": "ping"}, self.slots[-1].pinged)
                self._alive_at = time.monotonic()
            closed = self._closed
        if closed and link is not None:
            link.close()
        with self.changed:
            self._starting -= 1  # at the end: `close` waits for this thread
            self.changed.notify_all()

    def _avoid(self, node: str) -> None:
        """Start no host for a while on a node where one failed: an engine may notice late that a node is gone."""
        self._avoided[node] = time.monotonic() + fleet_limits.AVOID_SECONDS

    def _next_node(self) -> str:
        """Return the node with the fewest hosts for its processors. Raises FleetError if there is no node."""
        nodes = self.engine.nodes()
        if not nodes:
            raise FleetError(self.engine.trouble() or "there is no node for a host")
        now = time.monotonic()
        with self.changed:
            used = [*(slot.link.node for slot in self.slots), *self._starting_on]

            def fullness(each: tuple[str, int]) -> tuple[bool, float, str]:
                name, size = each
                return self._avoided.get(name, 0) > now, used.count(name) / max(1, size), name

            chosen = min(nodes, key=fullness)[0]
            self._starting_on.append(chosen)
        return chosen

    # ── what hosts tell ──

    def heard(self, event: Json) -> None:
        self._on_event(event)

    def died(self, link: HostLink) -> None:
        """Forget a host, and start another one in its place."""
        with self.changed:
            slot = next((each for each in self.slots if each.link is link), None)
            if slot is None:
                self._early.add(id(link))
                return
            self.slots.remove(slot)
            slot.alive = False
            closed = self._closed
            self.deaths += not closed
            self._alive_at = time.monotonic()
            self._avoid(link.node)
            self.changed.notify_all()
        if not closed:
            threading.Thread(target=self._bury, args=(link,), name="handrail-bury", daemon=True).start()
            self._fill()

    def _bury(self, link: HostLink) -> None:
        link.close(at_once=True)

    def _ping(self) -> None:
        """Ask each host from time to time whether it lives; one that says nothing for long counts as dead."""
        while not self._stopping.wait(fleet_limits.PING_SECONDS):
            for slot in [*self.slots]:
                if time.monotonic() - slot.heard > fleet_limits.SILENT_SECONDS:
                    self.died(slot.link)
                else:
                    slot.link.begin({"op": "ping"}, slot.pinged)
            self._fill()

    # ── choosing ──

    def take(self, tree: str, seconds: float | None = None) -> HostSlot | None:
        """Reserve a place for a workspace of a tree; wait at most so long for one. None if there is none.

        Hosts that have the tree come first, then those with the fewest workspaces. Raises FleetError if no host starts.
        """
        ending = None if seconds is None else time.monotonic() + seconds
        with self.changed:
            while True:
                now = time.monotonic()
                free = [
                    slot for slot in self.slots if slot.alive and slot.used < self.per_host and slot.busy_until <= now
                ]
                if free:
                    chosen = min(free, key=lambda slot: (self._load(slot), tree not in slot.trees, slot.used))
                    chosen.used += 1
                    return chosen
                if not self.slots:
                    self._expect_hosts(now)
                left = None if ending is None else ending - now
                if left is not None and left <= 0:
                    return None
                self.changed.wait(min(fleet_limits.BUSY_SECONDS, left or fleet_limits.BUSY_SECONDS))

    def _free(self, now: float) -> list[HostSlot]:
        """Return the hosts that have room now."""
        with self.changed:
            return [each for each in self.slots if each.alive and each.used < self.per_host and each.busy_until <= now]

    def _expect_hosts(self, now: float) -> None:
        """Try to start hosts while none runs. Raises FleetError if that has failed for too long."""
        if now - self._alive_at > fleet_limits.START_SECONDS:
            raise FleetError(self.engine.trouble() or self._trouble or "no host runs")
        if not self._starting:
            self._fill()

    def _load(self, slot: HostSlot) -> int:
        """Return how full a host is, in steps: within one step, the tree decides."""
        return slot.used * 4 // self.per_host

    def why_full(self) -> str:
        """Return why hosts with free places opened no workspace a moment ago; empty if they did."""
        since = time.monotonic() - fleet_limits.STATUS_SECONDS
        with self.changed:
            return next((slot.busy for slot in self.slots if slot.busy_until > since), "")

    def give_back(self, slot: HostSlot, *, busy: str = "") -> None:
        """Free the place of a workspace; `busy` keeps the host from getting another one for a moment."""
        with self.changed:
            slot.used -= 1
            if busy:
                slot.busy, slot.busy_until = busy, time.monotonic() + fleet_limits.BUSY_SECONDS
            self.changed.notify_all()

    def provide(self, slot: HostSlot, tree: str, pack: str) -> None:
        """Bring a tree to the node of a host. Raises HostDiedError and FleetError."""
        with slot.providing:
            if tree not in slot.trees:
                slot.link.provide(tree, pack)
                slot.trees.add(tree)

    def room(self) -> int:
        """Return how many workspaces could be opened now."""
        now = time.monotonic()
        with self.changed:
            return sum(self.per_host - slot.used for slot in self._free(now))

    def close(self) -> None:
        """End all hosts."""
        self._stopping.set()
        with self.changed:
            self._closed = True
            slots, self.slots = self.slots, []
            self.changed.notify_all()
        closing = [threading.Thread(target=slot.link.close) for slot in slots]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        with self.changed:
            self.changed.wait_for(lambda: not self._starting, fleet_limits.START_SECONDS)
        self.engine.close()
