"""Tests a fleet on real Ray nodes (`make test-fleet`): whatever is killed, every episode ends whole.

The nodes listen on more than the loopback, so these tests run only in a network namespace that has nothing else.
"""

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fleet import fleet_episodes
from fleet.ray_cluster import RayCluster, hosts_below, kill, until

from handrail.fleet import Fleet, FleetError
from handrail.kernel.fleet.node_directory import clear_killed, left_over, node_home


def alone() -> bool:
    """Say whether the loopback is the only network here."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="handrail[fleet] is not installed: make test-fleet"),
    pytest.mark.skipif(not alone(), reason="Ray listens on every network: make test-fleet takes them away"),
]
STEPS, TASKS = 14, 8
ROUNDS = int(os.environ.get("HANDRAIL_FLEET_KILLS", "1"))
"""How often each random kill is tried; `make soak-fleet` raises it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    made = RayCluster(Path("/tmp") / f"hr-{os.getpid()}")  # short: sockets lie in it
    try:
        for number in (1, 2):
            made.add(number)
        yield made
    finally:
        made.close()


@pytest.fixture
def two_nodes(cluster: RayCluster, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    """Return the cluster with two live nodes, whatever a test before has killed."""
    for name, value in cluster.variables.items():
        if name.startswith("RAY_"):
            monkeypatch.setenv(name, value)
    used = {int(ip.rpartition(".")[2]) for ip in cluster.nodes}
    for number in range(1, 200):
        if len(cluster.nodes) >= 2:
            break
        if number + 1 not in used and number not in _USED:
            cluster.add(number)
            _USED.add(number)
    return cluster


_USED: set[int] = {1, 2}


@pytest.fixture
def ray_fleet(two_nodes: RayCluster, node: str) -> Iterator[Callable[..., Fleet]]:
    opened: list[Fleet] = []

    def make(**options: Any) -> Fleet:
        given = {"hosts": 2, "checkpoint_calls": 4, "directory": node, "address": two_nodes.address}
        opened.append(Fleet("ray", **{**given, **options}))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def whole(found: list[Any]) -> bool:
    return [done.value for done in found] == [{"lines": [str(n) for n in range(STEPS)]}] * TASKS


def expect_nothing_left(node: str) -> None:
    """Wait for the last host, and sweep as the next fleet on the node would, until nothing is left.

    The lock of a killed host is free when the last of its threads has ended, a moment after its process shows none.
    """
    until(lambda: not hosts_below(node))

    def swept() -> bool:
        clear_killed(node_home(node))
        return left_over(node_home(node)) == []

    until(swept)
    mounts = Path("/proc/self/mounts").read_text()
    assert node not in mounts


def test_ray_calls_forks_and_snapshots_work_as_on_this_machine(
    ray_fleet: Callable[..., Fleet], tree_root: Path
) -> None:
    fleet = ray_fleet()
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        assert "ran" in ws.call("codex", "shell", {"command": "src/run.sh; echo x >> log"}, id="1").text
        assert ws.call("codex", "shell", {"command": "src/run.sh; echo x >> log"}, id="1").success
        assert ws.read_bytes("log") == b"x\n"
        (kid,) = ws.fork(1)
        kid.write_bytes("own", b"\xff")
        assert not ws.exec(["test", "-e", "own"]).ok
        assert ws.snapshot().id == ws.snapshot().id
        for level in ("network", "off"):  # settings of one workspace do not open the cluster either
            with pytest.raises(FleetError, match="ports of the cluster"):
                fleet.open(ws.snapshot(), sandbox=level)


def test_ray_hosts_are_spread_and_tree_comes_once_to_each(ray_fleet: Callable[..., Fleet], tree_root: Path) -> None:
    fleet = ray_fleet()
    until(lambda: len(fleet.hosts) == 2)
    assert len({name.partition("-")[0] for name in fleet.hosts}) == 2
    found = [*fleet.map(fleet_episodes.double, ({"n": n} for n in range(20)), tree=fleet.tree(str(tree_root)))]
    assert sorted(done.value for done in found) == [2 * n for n in range(20)]


KILLS = ("child", "worker", "raylet", "node")


@pytest.mark.parametrize("round_number", range(ROUNDS))
@pytest.mark.parametrize("what", KILLS)
def test_ray_episodes_end_whole_after_kill(
    what: str, round_number: int, two_nodes: RayCluster, ray_fleet: Callable[..., Fleet], tree_root: Path, node: str
) -> None:
    fleet = ray_fleet()
    tree = fleet.tree(str(tree_root))
    until(lambda: len(fleet.hosts) == 2)
    victim = random.choice([*two_nodes.nodes])

    def strike() -> None:
        time.sleep(random.uniform(0.2, 2.5))
        if what == "child":
            kill(two_nodes.hosts(victim))
        elif what == "worker":
            kill(two_nodes.workers(victim))
        elif what == "raylet":
            two_nodes.kill_raylet(victim)
        else:
            two_nodes.kill_node(victim)

    striking = threading.Thread(target=strike)
    striking.start()
    tasks = [{"steps": STEPS, "pause": 0.15} for _ in range(TASKS)]
    found = [*fleet.map(fleet_episodes.append_steps, tasks, tree=tree)]
    striking.join()
    assert whole(found), found
    assert not any(done.diverged for done in found)
    fleet.close()
    expect_nothing_left(node)


def test_ray_open_cluster_is_refused_unless_told(tmp_path: Path, node: str) -> None:
    """A cluster without a token, in a process of its own: this one may have joined the other cluster."""
    code = (
        "import sys\nfrom handrail.fleet import Fleet, FleetError\n"
        "given = {'hosts': 1, 'address': sys.argv[1], 'directory': sys.argv[2], **eval(sys.argv[3])}\n"
        "try: Fleet('ray', **given).close(); print('joined')\n"
        "except FleetError as error: print(error)\n"
    )
    port = "26399"
    started = RayCluster(Path("/tmp") / f"ho-{os.getpid()}", token=False, port=int(port))
    try:
        started.add(100)

        def said(options: str) -> str:
            argv = [sys.executable, "-c", code, started.address, node, options]
            return subprocess.run(argv, env=started.variables, capture_output=True, text=True, check=False).stdout

        assert "without a token" in said("{}")
        assert "could reach the ports" in said("{'sandbox': 'network', 'allow_open_cluster': True}")
        assert said("{'allow_open_cluster': True}") == "joined\n"
    finally:
        started.close()


def run_command(cluster: RayCluster, place: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, **cluster.variables}
    argv = [sys.executable, "-P", "-m", "handrail", "fleet", *words]
    return subprocess.Popen(argv, cwd=place, env=environment, stderr=subprocess.PIPE, text=True)


def write_tasks(place: Path, tree_root: Path, count: int, **more: Any) -> str:
    (place / "mine.py").write_text((Path(__file__).parent / "fleet_episodes.py").read_text())
    tasks = [{"id": f"t{n}", "steps": 6, "tree": str(tree_root), **more} for n in range(count)]
    (place / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return str(place / "tasks.jsonl")


def results_of(place: Path) -> list[dict[str, Any]]:
    path = place / "out" / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_ray_run_whose_driver_is_killed_goes_on(
    two_nodes: RayCluster, tmp_path: Path, tree_root: Path, node: str
) -> None:
    count = 12
    tasks = write_tasks(tmp_path, tree_root, count, pause=0.2)
    options = ["--on", "ray", "--address", two_nodes.address, "--directory", node, "--per-host", "2", "--hosts", "2"]
    driver = run_command(two_nodes, tmp_path, "run", tasks, "--agent", "mine:append_steps", *options, "--out", "out")
    until(lambda: len(results_of(tmp_path)) >= 2)
    driver.kill()
    driver.communicate()
    before = len(results_of(tmp_path))
    expect_nothing_left(node)
    again = run_command(two_nodes, tmp_path, "resume", "out")
    said = again.communicate()[1]
    assert again.returncode == 0, said
    found = results_of(tmp_path)
    assert before < count
    assert sorted(each["task"] for each in found) == sorted(f"t{n}" for n in range(count))
    assert all(each["value"]["lines"] == [str(n) for n in range(6)] for each in found)
    expect_nothing_left(node)


def test_ray_head_that_dies_stops_new_work_only_and_is_named(
    two_nodes: RayCluster, tmp_path: Path, tree_root: Path, node: str
) -> None:
    """The last test: it leaves no cluster."""
    tasks = write_tasks(tmp_path, tree_root, 4, pause=2.5)
    options = ["--on", "ray", "--address", two_nodes.address, "--directory", node, "--hosts", "2"]
    driver = run_command(two_nodes, tmp_path, "run", tasks, "--agent", "mine:append_steps", *options, "--out", "out")
    log = tmp_path / "out" / "logs" / "t3.jsonl"
    until(lambda: log.exists() and "call" in log.read_text())
    two_nodes.kill_head()
    status = tmp_path / "out" / "status.json"
    until(lambda: status.exists() and "head" in json.loads(status.read_text())["trouble"])
    said = driver.communicate(timeout=280)[1]
    assert len(results_of(tmp_path)) == 4, said
    assert all(each["ok"] for each in results_of(tmp_path))
    two_nodes.close()
    expect_nothing_left(node)
