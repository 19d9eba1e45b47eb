"""Fleets: memory, calls and recovery against their limits; commands beside SWE-ReX, Inspect and Ray actors.

`make bench-fleet` brings the packages, in a network of its own; without them the rows that need them are left out.
"""

import asyncio
import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import Row, row
from handrail.fleet import Fleet
from handrail.fleet.fleet_workspace import FleetWorkspace
from handrail.kernel.fleet.node_room import memory_of

LIVE = int(os.environ.get("HANDRAIL_LIVE", "250"))
MB = 1024 * 1024
THINK_SECONDS, STEPS, PER_NODE = 0.5, 12, 16
READ = ("file", "file.read", {"path": "a.txt"})


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        root = Path(home) / "tree"
        root.mkdir()
        (root / "a.txt").write_text("a line of text\n" * 50)
        rows = [*_local(home, root)]
        if importlib.util.find_spec("ray") is None or not _alone():
            print("\nfleet: Ray is left out: make bench-fleet")
            return rows
        return [*rows, *_ray(home, root)]


# ── one machine ──


def _local(home: str, root: Path) -> Iterator[Row]:
    with Fleet(hosts=1, per_host=LIVE + 8, directory=f"{home}/node", checkpoint_calls=0) as fleet:
        tree = fleet.tree(str(root))
        with fleet.open(tree) as first:
            first.exec(["true"])
            pid = int(fleet.hosts[0].rpartition("-")[2])
            base = _memory(pid)
            live = [fleet.open(tree) for _ in range(LIVE)]
            for each in live:
                assert each.exec(["true"]).ok
            yield row(
                f"MB of a workspace with a live sandbox, of {LIVE} in one host / 5",
                (_memory(pid) - base) / LIVE / MB,
                5,
                1,
            )
            for each in live:
                each.close()
            ours = _each_ms(lambda: first.exec(["true"]), 60)
            yield row("a sandboxed command, one after the other, in ms / 1000 ms a core / 150", ours, 1000 / 150, 1)
            yield from _peers(ours)
    with Fleet(hosts=1, per_host=64, directory=f"{home}/node", checkpoint_calls=0) as fleet:
        together = _together_ms(fleet, fleet.tree(str(root)))
        yield row("a sandboxed command, 16 workspaces at once: ms of a core / 1000 ms / 150", together, 1000 / 150, 1)
        yield _opening(home, fleet)


def _together_ms(fleet: Fleet, tree: str) -> float:
    """Return the milliseconds of one core that a command takes, when 16 workspaces run commands at once."""
    workspaces = [fleet.open(tree) for _ in range(16)]
    for each in workspaces:
        each.exec(["true"])
    each_runs = 15

    def work(ws: FleetWorkspace) -> None:
        for _ in range(each_runs):
            ws.exec(["true"])

    threads = [threading.Thread(target=work, args=(each,)) for each in workspaces]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    return seconds * len(os.sched_getaffinity(0)) / (each_runs * len(workspaces)) * 1000


def _opening(home: str, fleet: Fleet) -> Row:
    root = Path(home) / "large"
    for number in range(5000):
        path = root / f"d{number % 100}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(14_000))
    tree = fleet.tree(str(root))
    fleet.open(tree).close()
    times = []
    for _ in range(7):
        started = time.perf_counter()
        opened = fleet.open(tree)
        times.append((time.perf_counter() - started) * 1000)
        opened.close()
    return row("opening a workspace of a tree of 70 MB on a warm node, in ms / 5 ms", statistics.median(times), 5, 1)


def _memory(pid: int) -> float:
    """Return the memory of a process and of all that it has started."""
    known: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                known[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, waiting = 0, [pid]
    while waiting:
        here = waiting.pop()
        found += memory_of(here)
        waiting += [each for each, parent in known.items() if parent == here]
    return found


def _each_ms(act: Callable[[], object], rounds: int) -> float:
    for _ in range(5):
        act()
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def _peers(ours: float) -> Iterator[Row]:
    """Compare with what runs commands without a sandbox: the ratio is the price of one."""
    if importlib.util.find_spec("swerex"):
        from swerex.runtime.abstract import Command
        from swerex.runtime.local import LocalRuntime

        loop = asyncio.new_event_loop()
        local = LocalRuntime()
        theirs = _each_ms(lambda: loop.run_until_complete(local.execute(Command(command=["true"]))), 60)
        yield row("a command, strict / SWE-ReX LocalRuntime, no sandbox", ours, theirs, 8)
        loop.run_until_complete(local.close())
        loop.close()
    if importlib.util.find_spec("inspect_ai"):
        from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

        loop = asyncio.new_event_loop()
        sandbox = LocalSandboxEnvironment()
        theirs = _each_ms(lambda: loop.run_until_complete(sandbox.exec(["true"], concurrency=False)), 60)
        yield row("a command, strict / the local sandbox of Inspect, no sandbox", ours, theirs, 8)
        sandbox.directory.cleanup()
        loop.close()


# ── Ray ──


def _alone() -> bool:
    return [name for _, name in socket.if_nameindex()] == ["lo"]


@contextmanager
def _cluster(home: str) -> Iterator[Any]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from fleet.ray_cluster import RayCluster

    made = RayCluster(Path("/tmp") / f"hb-{os.getpid()}")
    os.environ.update({name: each for name, each in made.variables.items() if name.startswith("RAY_")})
    try:
        yield made
    finally:
        import ray

        ray.shutdown()
        made.close()


def _ray(home: str, root: Path) -> Iterator[Row]:
    with _cluster(home) as cluster:
        cluster.add(1)
        yield from _overhead(cluster, home, root)
        one = _rate(cluster, home, root, 1)
        for number in range(2, 9):
            cluster.add(number)
        eight = _rate(cluster, home, root, 8)
        print(f"calls/s with {THINK_SECONDS} s of thought: 1 node {one:.1f}, 8 nodes {eight:.1f}")
        yield row(
            "8 nodes: calls/s that are missing to 8 times 1 node, in percent / 10", 100 * (1 - eight / 8 / one), 10, 1
        )
        yield _recovery(cluster, home, root)


def _overhead(cluster: Any, home: str, root: Path) -> Iterator[Row]:
    import ray

    with (
        Fleet(hosts=1, directory=f"{home}/node", checkpoint_calls=0) as local,
        local.open(local.tree(str(root))) as near,
    ):
        options: dict[str, Any] = {
            "address": cluster.address,
            "hosts": 1,
            "directory": f"{home}/node",
            "checkpoint_calls": 0,
        }
        with Fleet("ray", **options) as fleet, fleet.open(fleet.tree(str(root))) as far:
            calls = [_each_ms(partial(ws.call, *READ), 300) for ws in (near, far)]
            batches = [_each_ms(partial(ws.calls, [READ] * 20), 50) / 20 for ws in (near, far)]
            commands = _each_ms(lambda: far.exec(["true"]), 60)
            actor = ray.remote(_PlainActor).options(num_cpus=0).remote()
            plain = _each_ms(lambda: ray.get(actor.run.remote(["true"])), 60)
    yield row("what Ray adds to a call, in ms / 1 ms", calls[1] - calls[0], 1, 1)
    yield row("what Ray adds to a call in a batch of 20, in ms / 0.15 ms", batches[1] - batches[0], 0.15, 1)
    yield row("a command over Ray, strict / a plain Ray actor, no sandbox", commands, plain, 6)


class _PlainActor:
    """What users write by hand."""

    def run(self, argv: list[str]) -> int:
        return subprocess.run(argv, check=False).returncode


def _rate(cluster: Any, home: str, root: Path, nodes: int) -> float:
    """Return the calls/s of episodes that think between their calls."""
    options: dict[str, Any] = {
        "address": cluster.address,
        "hosts": nodes,
        "per_host": PER_NODE,
        "directory": f"{home}/node",
        "checkpoint_calls": 0,
    }
    with Fleet("ray", **options) as fleet:
        tree = fleet.tree(str(root))
        deadline = time.monotonic() + 120
        while len(fleet.hosts) < nodes and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(fleet.hosts) == nodes
        task = {"steps": STEPS, "think": THINK_SECONDS}
        warm = [*fleet.map("bench.fleet_episodes:think", [{"steps": 1, "think": 0}] * nodes * PER_NODE, tree=tree)]
        assert all(done.ok for done in warm)
        found = [*fleet.map("bench.fleet_episodes:think", [task] * nodes * PER_NODE, tree=tree)]
    assert all(done.ok for done in found), found[0]
    rates = [STEPS / done.value for done in found]
    return float(statistics.mean(rates) * len(found))


def _recovery(cluster: Any, home: str, root: Path) -> Row:
    """Return the seconds from the kill of a node until the last of its episodes makes a new call."""
    options: dict[str, Any] = {"address": cluster.address, "hosts": 3, "per_host": 12, "directory": f"{home}/node"}
    struck, back = [0.0], list[float]()
    lost: set[str] = set()

    def heard(event: dict[str, Any]) -> None:
        name = event["task"]["id"]
        if event["event"] == "again":
            lost.add(name)
        elif event["event"] == "logged" and name in lost:
            lost.discard(name)
            back.append(time.monotonic() - struck[0])

    with Fleet("ray", **options) as fleet:
        tree = fleet.tree(str(root))
        while len(fleet.hosts) < 3:
            time.sleep(0.2)
        by_address = {each["NodeID"][:8]: each["NodeManagerAddress"] for each in _nodes()}
        victim = by_address[fleet.hosts[0].partition("-")[0]]

        def strike() -> None:
            time.sleep(4)
            struck[0] = time.monotonic()
            cluster.kill_node(victim)

        threading.Thread(target=strike).start()
        tasks = [{"id": str(n), "steps": 24, "think": 0.5} for n in range(18)]
        found = [*fleet.map("bench.fleet_episodes:think", tasks, tree=tree, on_event=heard)]
    assert all(done.ok for done in found)
    assert back
    return row(f"s until the {len(back)} episodes of a killed node run again / 5", max(back), 5, 1)


def _nodes() -> list[dict[str, Any]]:
    import ray

    return list(ray.nodes())
