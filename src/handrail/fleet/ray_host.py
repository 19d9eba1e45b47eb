"""Runs a host in a Ray cluster as an actor with a child; the child does the work, because a Ray worker cannot unshare.

Only texts and bytes cross between the actor and the fleet. Every answer is JSON; nothing of a workspace is unpickled.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError
from handrail.fleet.child_link import ChildLink
from handrail.fleet.fleet_errors import to_json
from handrail.kernel.fleet.host_process import HostProcess
from handrail.kernel.fleet.node_directory import keep_pack, new_host, node_home
from handrail.model.fleet_limits import EVENT_SECONDS, PING_SECONDS

if TYPE_CHECKING:
    from handrail.fleet.host_engine import Json


class RayHost:
    """Starts a host on the node of this actor, and passes texts on."""

    def __init__(self, directory: str | None) -> None:
        self._loop = asyncio.get_event_loop()
        self._events: list[Json] = []
        self._news = asyncio.Event()
        self._ended = False
        child = HostProcess(new_host(node_home(directory)))
        self._link = ChildLink(child, self._from_child, self._child_ended)
        self._metrics = asyncio.ensure_future(self._measure())

    def _from_child(self, event: "Json") -> None:
        self._loop.call_soon_threadsafe(self._note, event)

    def _child_ended(self) -> None:
        self._loop.call_soon_threadsafe(self._note, None)

    def _note(self, event: "Json | None") -> None:
        if event is None:
            self._ended = True
        else:
            self._events.append(event)
        self._news.set()

    async def ask(self, request: str) -> str:
        """Pass a request on; return the answer of the host."""
        answered: asyncio.Future[Json] = self._loop.create_future()

        def reply(value: Any, error: HandrailError | None) -> None:
            answer = {"value": value} if error is None else {"error": to_json(error)}
            self._loop.call_soon_threadsafe(_settle, answered, answer)

        self._link.begin(json.loads(request), reply)
        return json.dumps(await answered)

    async def events(self) -> str:
        """Return what happened since the last time, as soon as something does; null at the end of the host."""
        if not self._events and not self._ended:
            try:
                await asyncio.wait_for(self._news.wait(), EVENT_SECONDS)
            except TimeoutError:
                return "[]"
        self._news.clear()
        events, self._events = self._events, []
        if self._ended and not events:
            return "null"
        return json.dumps(events)

    async def put_tree(self, tree: str, pack: bytes) -> str:
        """Let the host unpack a tree from bytes that came through the object store."""
        path = await asyncio.to_thread(keep_pack, self._link.child.directory, pack)
        return await self.ask(json.dumps({"op": "tree", "tree": tree, "path": path, "remove": True}))

    async def pid(self) -> str:
        """Return the process of the host, as JSON."""
        return json.dumps(self._link.child.pid)

    async def end(self) -> str:
        """End the host, and return when nothing of it is left."""
        self._metrics.cancel()
        await asyncio.to_thread(self._link.close)
        return "null"

    async def _measure(self) -> None:
        """Count calls and workspaces for the metrics and the dashboard of Ray."""
        from ray.util.metrics import Counter, Gauge  # noqa: PLC0415  an extra

        calls = Counter("handrail_fleet_calls", "Calls of workspaces.")
        workspaces = Gauge("handrail_fleet_workspaces", "Workspaces that are open.")
        memory = Gauge("handrail_fleet_free_memory_bytes", "Free memory of the node.")
        before = 0
        while not self._ended:
            found = json.loads(await self.ask('{"op": "ping"}')).get("value")
            if found:
                if found["calls"] > before:
                    calls.inc(found["calls"] - before)
                before = found["calls"]
                workspaces.set(found["workspaces"])
                memory.set(found["memory"])
            await asyncio.sleep(PING_SECONDS)


def _settle(answered: "asyncio.Future[Json]", answer: "Json") -> None:
    if not answered.done():
        answered.set_result(answer)
