"""Holds workspaces in one process: answers the fleet's requests on a socket, and ends when the fleet is gone.

Requests and answers are JSON. Each request has a thread of its own, so calls of different workspaces run side by side.
"""

import sys
import threading
import time
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError
from handrail.fleet.episode import EpisodeWorkspace, import_episode, run_episode
from handrail.fleet.episode_output import divide, printing
from handrail.fleet.fleet_errors import BusyError, FleetError, UnsavableError, to_json
from handrail.fleet.held_workspace import HeldWorkspace
from handrail.kernel.fleet import host_place, node_room, overlaid_tree, run_files
from handrail.kernel.fleet.copied_tree import CopiedTree
from handrail.kernel.fleet.frames import FrameSocket, MessageTooLong
from handrail.kernel.fleet.overlaid_tree import OverlaidTree
from handrail.kernel.fleet.saved_state import SavedState, TreeCopy
from handrail.kernel.fleet.tree_cache import TreeCache
from handrail.kernel.host.line_channel import raise_file_limit
from handrail.model import fleet_limits

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]
_THREADS = 1024


class Host:
    """Holds the workspaces of this process."""

    def __init__(self, frames: FrameSocket, place: host_place.HostPlace, copied: str) -> None:
        """Begin without workspaces. `copied` says why they will be copies of their trees; empty if overlays."""
        self._frames, self._place, self._copied = frames, place, copied
        self._trees = TreeCache(place.node, fleet_limits.TREE_CACHE_BYTES)
        self._held: dict[str, HeldWorkspace] = {}
        self._lock = threading.Lock()
        self._heard = time.monotonic()
        self._calls = 0

    # ── the connection ──

    def serve(self) -> None:
        """Answer requests until the fleet is gone, or says nothing for too long; then close everything."""
        threading.Thread(target=self._watch_lease, name="handrail-lease", daemon=True).start()
        workers = ThreadPoolExecutor(_THREADS, "handrail-host")
        while (request := self._frames.receive()) is not None:
            self._heard = time.monotonic()
            if request["op"] == "stop":
                break
            workers.submit(self._answer, request)
        self._close()

    def _watch_lease(self) -> None:
        while time.monotonic() - self._heard < fleet_limits.LEASE_SECONDS:
            time.sleep(fleet_limits.PING_SECONDS)
        self._frames.close()

    def _answer(self, request: Json) -> None:
        try:
            answer = {"n": request["n"], "value": self._operations[request["op"]](self, request)}
        except HandrailError as error:
            answer = {"n": request["n"], "error": to_json(error)}
        except Exception as error:  # noqa: BLE001  the fleet hears of every failure
            told = FleetError(f"{request['op']} failed in the host: {type(error).__name__}: {error}")
            answer = {"n": request["n"], "error": to_json(told)}
        try:
            self.tell(answer)
        except MessageTooLong as error:
            self.tell({"n": request["n"], "error": to_json(FleetError(f"the answer cannot be sent: {error}"))})

    def tell(self, event: Json) -> None:
        """Send an event or an answer to the fleet. Raises MessageTooLong."""
        with suppress(OSError):  # the fleet is gone: `serve` ends this process
            self._frames.send(event)

    def _close(self) -> None:
        with self._lock:
            held, self._held = list(self._held.values()), {}
        closing = [threading.Thread(target=each.close, daemon=True) for each in held]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(5)
        self._trees.close()
        self._place.end_process()

    # ── operations ──

    def _ping(self, _: Json) -> Json:
        with self._lock:
            now = {"workspaces": len(self._held), "calls": self._calls, "copied": self._copied}
        return {**now, **node_room.node_room()._asdict()}

    def _tree(self, request: Json) -> Json:
        self._trees.use(request["tree"], lambda: str(request["path"]))
        if request.get("remove"):
            run_files.remove(request["path"])
        return {}

    def _has_tree(self, request: Json) -> bool:
        return self._trees.has(request["tree"])

    def _open(self, request: Json) -> Json:
        held = self._opened(request)
        return {"root": held.root, "copied": self._copied}

    def _opened(self, request: Json) -> HeldWorkspace:
        self._expect_room(request["most"])
        tree_path = self._trees.use(request["tree"], partial(_missing, request["tree"]))
        root = self._place.new_root()
        copy: TreeCopy = (CopiedTree if self._copied else OverlaidTree)(request["tree"], tree_path, root)
        saved = request.get("saved")
        try:
            if saved:
                copy.restore(self._saved_files(saved))
            held = HeldWorkspace(request["workspace"], request["epoch"], copy, request["settings"], self.tell)
        except BaseException:
            copy.close()
            raise
        self.tell({"event": "opened", "workspace": held.name, "epoch": held.epoch, "root": held.root})
        try:
            if saved:
                held.recall(saved["memory"])
            if request["epoch"] > 1:
                held.restore(request.get("answers", []), request.get("redo", []), request.get("roots", []))
            self._keep(held)
        except BaseException:
            held.close()
            raise
        return held

    def _keep(self, held: HeldWorkspace) -> None:
        with self._lock:
            before = self._held.get(held.name)
            if before is not None and before.epoch >= held.epoch:
                before.check(held.epoch)
                raise FleetError(f"the workspace {held.name} is open already")
            self._held[held.name] = held
        if before is not None:
            before.close()

    def _expect_room(self, most: int) -> None:
        room = node_room.node_room()
        if len(self._held) >= most:
            raise BusyError(f"the host has {most} workspaces")
        if room.memory < fleet_limits.FREE_MEMORY_BYTES:
            raise BusyError("the host has too little memory")
        if room.processes < fleet_limits.FREE_PROCESSES:
            raise BusyError("the host can start too few processes")
        if room.files < fleet_limits.FREE_FILES:
            raise BusyError("the host can open too few files")

    def _workspace(self, request: Json) -> HeldWorkspace:
        held = self._held.get(request["workspace"])
        if held is None:
            raise FleetError(f"the host has no workspace {request['workspace']}")
        held.check(request["epoch"])
        return held

    def _call(self, request: Json) -> Json:
        held = self._workspace(request)
        self._calls += 1
        return held.call(request["dialect"], request["tool"], request["params"], request["id"])

    def _calls_in_order(self, request: Json) -> list[Json]:
        held = self._workspace(request)
        self._calls += len(request["calls"])
        return [held.call(each["dialect"], each["tool"], each["params"], each["id"]) for each in request["calls"]]

    def _fork(self, request: Json) -> list[Json]:
        parent = self._workspace(request)
        made = [parent.fork(name, self._place.new_root(), self._place.new_file()) for name in request["names"]]
        for each in made:
            self._keep(each)
        return [{"name": each.name, "root": each.root} for each in made]

    def _save(self, request: Json) -> Json:
        return self.saved(self._workspace(request), wait=request["wait"])

    def saved(self, held: HeldWorkspace, *, wait: bool) -> Json:
        """Save a workspace, and return its state with the files as text."""
        with held.save(self._place.new_file(), wait=wait) as found:
            files = {name: self._place.take(found[name]) for name in ("pack", "about")}
            return {**found, **{name: b64encode(data).decode() for name, data in files.items()}, "root": held.root}

    def _saved_files(self, saved: Json) -> SavedState:
        place = self._place.new_file()
        for name in ("pack", "about"):
            self._place.put(f"{place}.{name}", b64decode(saved[name], validate=True))
        return SavedState(saved["id"], f"{place}.pack", f"{place}.about")

    def _episode(self, request: Json) -> Json:
        episode = import_episode(request["episode"], request["search_path"])
        held = self._opened(request)
        services = _EpisodeHost(self, held, request["checkpoint"])
        given = EpisodeWorkspace(held, dict(request.get("notes") or {}), services)
        started = time.monotonic()
        try:
            with printing(partial(self._printed, held)):
                value = run_episode(episode, given, request["task"])
            if given.diverged:
                raise given.diverged
            return {"value": value, "calls": len(held.record), "seconds": time.monotonic() - started}
        finally:
            for each in (held, *services.forks):
                self._drop(each)

    def _printed(self, held: HeldWorkspace, text: str) -> None:
        self.tell({"event": "printed", "workspace": held.name, "epoch": held.epoch, "text": text})

    def _drop(self, held: HeldWorkspace) -> None:
        with self._lock:
            if self._held.get(held.name) is held:
                del self._held[held.name]
        held.close()

    def _close_workspace(self, request: Json) -> Json:
        with suppress(FleetError):
            self._drop(self._workspace(request))
        return {}

    _operations: "dict[str, Callable[[Host, Json], Any]]" = {  # noqa: RUF012  never changed
        "ping": _ping,
        "tree": _tree,
        "has_tree": _has_tree,
        "open": _open,
        "call": _call,
        "calls": _calls_in_order,
        "fork": _fork,
        "save": _save,
        "episode": _episode,
        "close": _close_workspace,
    }


class _EpisodeHost:
    """Counts the calls of one episode, saves its workspace from time to time, and forks it."""

    def __init__(self, host: Host, first: HeldWorkspace, checkpoint: int) -> None:
        self._host, self._first, self._checkpoint = host, first, checkpoint
        self._since = 0
        self._lock = threading.Lock()
        self.forks: list[HeldWorkspace] = []

    def called(self, held: HeldWorkspace) -> None:
        self._host._calls += 1  # noqa: SLF001  of its own module
        if held is not self._first or held.forked or not self._checkpoint:
            return
        with self._lock:
            self._since += 1
            if self._since < self._checkpoint:
                return
            self._since = 0
            with suppress(UnsavableError):  # later, or never: then the calls are made again from the beginning
                saved = self._host.saved(held, wait=False)
                self._host.tell({"event": "saved", "workspace": held.name, "epoch": held.epoch, "saved": saved})

    def fork(self, held: HeldWorkspace, n: int) -> list[HeldWorkspace]:
        names = [f"{held.name}/{len(self.forks) + number}" for number in range(n)]
        place = self._host._place  # noqa: SLF001  of its own module
        made = [held.fork(name, place.new_root(), place.new_file()) for name in names]
        self.forks += made
        self._host.tell({"event": "forked", "workspace": self._first.name, "epoch": self._first.epoch})
        return made


def _missing(tree: str) -> str:
    raise FleetError(f"the host does not have the tree {tree}")


def main() -> None:
    """Run a host: the socket and the directory are the arguments."""
    raise_file_limit()
    divide()
    place = host_place.HostPlace(sys.argv[2])
    copied = overlaid_tree.enter(place.trial())
    frames = FrameSocket.inherited(int(sys.argv[1]))
    place.leave_to_this_process(frames.forget)
    Host(frames, place, copied).serve()


if __name__ == "__main__":
    main()
