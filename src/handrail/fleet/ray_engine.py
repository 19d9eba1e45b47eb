"""Runs hosts in a Ray cluster: one actor for each, spread over the nodes, none restarted by Ray.

Ray's own retries stay off: a retried call would land on an empty actor. The fleet restores workspaces itself.
"""

import json
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.errors import HandrailError
from handrail.fleet.child_link import asked
from handrail.fleet.fleet_errors import FleetError, HostDiedError, from_json
from handrail.fleet.ray_probe import OPEN, REFUSED
from handrail.kernel.fleet import run_files
from handrail.kernel.fleet.host_process import run_module
from handrail.model.fleet_limits import END_SECONDS, HEAD_SECONDS, PING_SECONDS, START_SECONDS

if TYPE_CHECKING:
    from handrail.fleet.host_engine import HostWatcher, Json, Reply

T = TypeVar("T")
_EXPOSED = ("network", "off")
_THREADS = 8192
_HEAD_GONE = "the head of the Ray cluster does not answer: running episodes go on, and no new host starts"


class RayEngine:
    """Starts hosts in a Ray cluster."""

    def __init__(
        self,
        directory: str | None,
        *,
        address: str = "auto",
        host_cpus: float = 1,
        shared: str | None = None,
        allow_open_cluster: bool = False,
        allow_exposed_cluster: bool = False,
    ) -> None:
        try:
            import ray  # noqa: PLC0415  an extra
        except ModuleNotFoundError:
            raise FleetError("Ray is not installed", "pip install 'handrail[fleet]'") from None
        self._ray, self._directory = ray, directory
        self._allow_exposed = allow_exposed_cluster
        self._cpus, self._shared = host_cpus, shared
        self._began = not ray.is_initialized()
        if self._began:
            _joined(ray, address)
        try:
            _check_token(ray.get_runtime_context().gcs_address, allowed=allow_open_cluster)
        except BaseException:
            self._leave()
            raise
        self._trees: dict[str, Any] = {}
        self._putting = threading.Lock()
        self._trouble, self._closed = "", threading.Event()
        threading.Thread(target=self._watch_head, name="handrail-head", daemon=True).start()

    # ── the cluster ──

    def nodes(self) -> list[tuple[str, int]]:
        """Return the live nodes with their processors. Raises FleetError if the head does not answer."""
        found = self._from_head(self._ray.nodes)
        alive = [each for each in found if each["Alive"] and each["Resources"].get("CPU", 0) >= self._cpus]
        return [(each["NodeID"], int(max(1, each["Resources"].get("CPU", 1)))) for each in alive]

    def _from_head(self, ask: Callable[[], T]) -> T:
        """Return what the head answers; wait for it no longer than its limit. Raises FleetError."""
        found: list[T] = []

        def work() -> None:
            try:
                found.append(ask())
            except Exception:  # noqa: BLE001  every failure means the same: the head cannot be asked
                return

        asking = threading.Thread(target=work, name="handrail-ask-head", daemon=True)
        asking.start()
        asking.join(HEAD_SECONDS)
        if not found:
            self._trouble = _HEAD_GONE
            raise FleetError(_HEAD_GONE)
        self._trouble = ""
        return found[0]

    def _watch_head(self) -> None:
        while not self._closed.wait(PING_SECONDS):
            try:
                self.nodes()
            except FleetError:
                continue  # it stays as the trouble

    def trouble(self) -> str:
        return self._trouble

    def expect_closed(self, sandbox: str) -> None:
        """Refuse a sandbox level at which commands reach the ports of the cluster. Raises FleetError."""
        if sandbox in _EXPOSED and not self._allow_exposed:
            raise FleetError(
                f"commands at the sandbox level {sandbox} could reach the ports of the cluster",
                "Use strict, or say allow_exposed_cluster=True",
            )

    # ── hosts ──

    def start(self, node: str, watcher: "HostWatcher") -> "RayLink":
        """Start a host on a node; return when it answers. Raises FleetError."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  an extra

        from handrail.fleet.ray_host import RayHost  # noqa: PLC0415  only for actors

        if self._trouble:
            raise FleetError(self._trouble)
        actor = (
            self._ray.remote(RayHost)
            .options(
                num_cpus=self._cpus,
                max_restarts=0,
                max_task_retries=0,
                max_concurrency=_THREADS,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote(self._directory)
        )
        try:
            pid = json.loads(self._ray.get(actor.pid.remote(), timeout=START_SECONDS))
        except Exception as error:
            self.kill(actor)
            raise FleetError(f"no host starts on the node {node[:8]}: {type(error).__name__}: {error}") from error
        link = RayLink(self, actor, node, pid, watcher)
        asked(link, {"op": "ping"}, START_SECONDS)
        return link

    def kill(self, actor: Any) -> None:
        """Let Ray kill an actor, if it can be reached."""

        def work() -> None:
            self._ray.kill(actor, no_restart=True)

        killing = threading.Thread(target=_ignoring, args=(work,), name="handrail-kill", daemon=True)
        killing.start()
        killing.join(HEAD_SECONDS)

    def wait(self, ref: Any, seconds: float | None = None) -> Any:
        """Return the value of an answer. Raises HostDiedError if it does not come."""
        try:
            return self._ray.get(ref, timeout=seconds)
        except self._ray.exceptions.RayError as error:
            raise HostDiedError(f"the host cannot be reached: {type(error).__name__}") from None

    def tree(self, tree: str, pack: str) -> Any:
        """Put a tree into the object store, once; each node takes it from there once."""
        with self._putting:
            if tree not in self._trees:
                self._trees[tree] = self._ray.put(run_files.read_bytes(pack))
            return self._trees[tree]

    def shared_pack(self, tree: str, pack: str) -> str | None:
        """Copy a pack to the directory that all nodes share; None if there is none."""
        if self._shared is None:
            return None
        path = run_files.run_place(self._shared, f"{tree}.pack")
        if not run_files.exists(path):
            run_files.write_bytes(path, run_files.read_bytes(pack))
        return path

    def close(self) -> None:
        """Leave the cluster, if this fleet has joined it."""
        self._closed.set()
        self._trees.clear()
        self._leave()

    def _leave(self) -> None:
        if self._began:
            leaving = threading.Thread(target=_ignoring, args=(self._ray.shutdown,), daemon=True)
            leaving.start()
            leaving.join(END_SECONDS)


class RayLink:
    """Reaches a host through its actor."""

    def __init__(self, engine: RayEngine, actor: Any, node: str, pid: int, watcher: "HostWatcher") -> None:
        self.node, self.name, self.pid = node, f"{node[:8]}-{pid}", pid
        self._engine, self._actor, self._watcher = engine, actor, watcher
        self._lock, self._ended = threading.Lock(), False
        self._waiting: set[Reply] = set()
        self._listen()

    def begin(self, request: "Json", reply: "Reply") -> None:
        """Send a request; `reply` is called in another thread."""
        with self._lock:
            ended = self._ended
            if not ended:
                self._waiting.add(reply)
        if ended:
            reply(None, HostDiedError("the host has ended"))
            return
        self._send("ask", partial(self._answered, reply), json.dumps(request))

    def _send(self, method: str, done: Callable[[Any], None], *arguments: Any) -> None:
        try:
            future = getattr(self._actor, method).remote(*arguments).future()
        except Exception:  # noqa: BLE001  Ray has no one class for this: the cluster, or the way to it, is gone
            self._end()
            return
        future.add_done_callback(done)

    def _answered(self, reply: "Reply", future: Any) -> None:
        try:
            answer = json.loads(future.result())
        except Exception:  # noqa: BLE001  whatever Ray says, the answer does not come from this host
            self._end()
            return
        if "error" in answer:
            self._settle(reply, None, from_json(answer["error"]))
        else:
            self._settle(reply, answer["value"], None)

    def _settle(self, reply: "Reply", value: Any, error: HandrailError | None) -> None:
        with self._lock:
            known = reply in self._waiting
            self._waiting.discard(reply)
        if known:
            reply(value, error)

    def _listen(self) -> None:
        self._send("events", self._heard)

    def _heard(self, future: Any) -> None:
        try:
            events = json.loads(future.result())
        except Exception:  # noqa: BLE001  the connection to the actor broke: this is how the death of a node is noticed
            events = None
        if events is None or self._ended:
            self._end()
            return
        for event in events:
            self._watcher.heard(event)
        self._listen()

    def _end(self) -> None:
        """Treat the host as dead: ignore everything that it still sends."""
        with self._lock:
            if self._ended:
                return
            self._ended, left = True, [*self._waiting]
            self._waiting.clear()
        for reply in left:
            reply(None, HostDiedError("the host has ended"))
        self._watcher.died(self)

    def provide(self, tree: str, pack: str) -> None:
        """Bring a tree to the node of the host, unless it is there."""
        if asked(self, {"op": "has_tree", "tree": tree}):
            asked(self, {"op": "tree", "tree": tree, "path": ""})
        elif (shared := self._engine.shared_pack(tree, pack)) is not None:
            asked(self, {"op": "tree", "tree": tree, "path": shared})
        else:
            put = self._engine.wait(self._actor.put_tree.remote(tree, self._engine.tree(tree, pack)))
            if "error" in (answer := json.loads(put)):
                raise from_json(answer["error"])

    def close(self, *, at_once: bool = False) -> None:
        """End the host; Ray kills the actor."""
        if not at_once:
            _ignoring(lambda: self._engine.wait(self._actor.end.remote(), END_SECONDS))
        self._end()
        self._engine.kill(self._actor)


def _joined(ray: Any, address: str) -> None:
    """Join a cluster. Raises FleetError."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", configure_logging=True)
    except Exception as error:
        told = str(error).strip().split("\n")[0]
        raise FleetError(f"cannot join the Ray cluster {address}: {type(error).__name__}: {told}") from error


def _check_token(address: str, *, allowed: bool) -> None:
    """Refuse a cluster that any program may join without a token. Raises FleetError."""
    if allowed:
        return
    found = run_module("handrail.fleet.ray_probe", [address], without=("RAY_AUTH",))
    if found == REFUSED:
        return
    if found == OPEN:
        raise FleetError(
            "the Ray cluster takes requests without a token, so whatever reaches its ports controls it",
            "Start it with RAY_AUTH_MODE=token, or say allow_open_cluster=True",
        )
    raise FleetError("cannot find out whether the Ray cluster asks for a token")


def _ignoring(act: Callable[[], object]) -> None:
    """Run a function, and ignore its failure: what it should end is gone already."""
    try:
        act()
    except Exception:  # noqa: BLE001  see above
        return
