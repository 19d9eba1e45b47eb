"""Tests episodes: every task ends once and whole, whatever happens to its hosts."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet import fleet_episodes
from fleet.conftest import kill_host
from fleet.ray_cluster import sandboxed_below, until

from handrail.fleet import Fleet, FleetError
from handrail.model.fleet_limits import FRAME_BYTES, SILENT_SECONDS

pytestmark = pytest.mark.sandbox


def lines(n: int) -> list[str]:
    return [str(number) for number in range(n)]


def state_of_process(pid: int) -> str:
    """Return the state letter of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_map_gives_one_result_for_each_task(node: str, tree_root: Path) -> None:
    with Fleet(hosts=2, per_host=4, directory=node) as fleet:
        tree = fleet.tree(str(tree_root))
        found = [*fleet.map(fleet_episodes.double, ({"n": n} for n in range(40)), tree=tree)]
    assert sorted(done.value for done in found) == [2 * n for n in range(40)]
    assert all(done.ok and done.deaths == 0 for done in found)


@pytest.mark.parametrize("at", [1, 4, 9])
def test_episode_whose_host_dies_goes_on_with_each_call_once(
    fleet: Fleet, tree_root: Path, tmp_path: Path, at: int
) -> None:
    task = {"steps": 11, "at": at, "marker": str(tmp_path / "died")}
    (done,) = fleet.map(fleet_episodes.die_once, [task], tree=fleet.tree(str(tree_root)))
    assert done.value == {"lines": lines(11)}
    assert done.deaths == 1
    assert not done.diverged


def test_episodes_under_random_kills_end_whole(node: str, tree_root: Path, left: Callable[[], list[str]]) -> None:
    steps, tasks = 12, 8
    over = threading.Event()
    with Fleet(hosts=2, directory=node, checkpoint_calls=4) as fleet:

        def kill() -> None:
            for _ in range(3):
                if over.wait(random.uniform(0.3, 1.5)):
                    return
                for name in fleet.hosts[:1]:
                    os.kill(int(name.rpartition("-")[2]), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        given = [{"steps": steps, "pause": 0.05} for _ in range(tasks)]
        found = [*fleet.map("fleet.fleet_episodes:append_steps", given, tree=fleet.tree(str(tree_root)))]
        over.set()
        killer.join()
    assert [done.value for done in found] == [{"lines": lines(steps)}] * tasks
    assert left() == []
    until(lambda: not sandboxed_below(node))


def test_sandbox_that_begins_as_its_host_is_killed_ends(
    fleet: Fleet, node: str, tree_root: Path, tmp_path: Path
) -> None:
    """The first process of a sandbox ignores the death of bubblewrap until it has started a program."""
    marker = tmp_path / "begun"
    task = {"marker": str(marker)}
    (done,) = fleet.map("fleet.fleet_episodes:die_as_sandbox_begins", [task], tree=fleet.tree(str(tree_root)))
    fleet.close()
    assert (done.value, done.deaths) == ("ran\n", 1)
    assert marker.read_text().isdigit()
    until(lambda: not sandboxed_below(node))


def test_failed_episode_begins_again_on_fresh_workspace(fleet: Fleet, tree_root: Path, tmp_path: Path) -> None:
    task = {"marker": str(tmp_path / "tries"), "failures": 2}
    (done,) = fleet.map(fleet_episodes.fail_first, [task], tree=fleet.tree(str(tree_root)), retries=2)
    assert done.ok
    assert done.tries == 3
    assert done.value.split().count("left.txt") == 1


def test_episode_that_always_fails_is_reported_with_its_exception(
    fleet: Fleet, tree_root: Path, tmp_path: Path
) -> None:
    task = {"marker": str(tmp_path / "tries"), "failures": 9}
    (done,) = fleet.map(fleet_episodes.fail_first, [task], tree=fleet.tree(str(tree_root)), retries=1)
    assert not done.ok
    assert "RuntimeError: not yet" in done.error
    assert (tmp_path / "tries").read_text().split() == ["x", "x"]


def test_episode_with_other_calls_after_death_diverges_and_begins_again(
    fleet: Fleet, tree_root: Path, tmp_path: Path
) -> None:
    (done,) = fleet.map(fleet_episodes.change_mind, [{"marker": str(tmp_path / "m")}], tree=fleet.tree(str(tree_root)))
    assert done.value == [f"after {number}" for number in range(6)]
    assert done.diverged


def test_map_of_unimportable_episode_is_refused(fleet: Fleet) -> None:
    with pytest.raises(FleetError, match="cannot import"):
        fleet.map(lambda _ws, _task: None, [], tree="0")
    with pytest.raises(FleetError, match="does not name"):
        fleet.map("nothing", [], tree="0")


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ({"n": 1}, r"names no tree.*tree=fleet\.tree"),
        ({"n": {1, 2}, "tree": ""}, "not a JSON object"),
        (None, "not a JSON object"),
        ("n", "not a JSON object"),
    ],
)
def test_map_of_wrong_task_says_why_and_frees_places(task: Any, says: str, node: str) -> None:
    with Fleet(hosts=1, per_host=1, directory=node) as fleet:
        tree = fleet.empty_tree()
        tasks: list[Any] = [{"n": 1, "tree": tree}, task]
        with pytest.raises(FleetError, match=says):
            [*fleet.map(fleet_episodes.double, tasks)]
        assert next(fleet.map(fleet_episodes.double, [{"n": 2, "tree": tree}])).value == 4


def test_map_left_early_ends_its_episodes_and_frees_places(node: str, tmp_path: Path) -> None:
    """Both places of the host are needed again at the end: one is held by an episode that would go on for long."""
    with Fleet(hosts=1, per_host=2, directory=node) as fleet:
        tree = fleet.empty_tree()
        tasks: list[dict[str, Any]] = [{"steps": 1}, {"steps": 10_000, "pause": 0.01}]
        assert next(fleet.map(fleet_episodes.append_steps, tasks, tree=tree)).ok
        with fleet.open(tree), fleet.open(tree) as second:
            assert second.exec(["true"]).ok


def test_map_raises_what_its_listener_raised(fleet: Fleet) -> None:
    def full(_: object) -> None:
        raise OSError(28, "the disk is full")

    tree = fleet.empty_tree()
    with pytest.raises(OSError, match="the disk is full"):
        [*fleet.map(fleet_episodes.double, [{"n": 1}] * 3, tree=tree, on_event=full)]
    assert next(fleet.map(fleet_episodes.double, [{"n": 2}], tree=tree)).value == 4
    assert fleet.host_deaths == 0


def test_map_serves_trees_in_turn(node: str, tmp_path: Path) -> None:
    with Fleet(hosts=1, per_host=1, directory=node) as fleet:
        trees = []
        for name in ("many", "few"):
            (tmp_path / name).mkdir()
            (tmp_path / name / name).write_text("x")
            trees.append(fleet.tree(str(tmp_path / name)))
        many, few = trees
        tasks = [{"n": 1, "tree": many} for _ in range(12)] + [{"n": 2, "tree": few} for _ in range(3)]
        order = [done.value for done in fleet.map(fleet_episodes.double, tasks)]
    assert order.index(4) < 2
    assert order[:6].count(4) == 3


def test_episode_with_too_long_result_fails_and_others_go_on(fleet: Fleet, tree_root: Path) -> None:
    tasks = [{"size": size} for size in (10, FRAME_BYTES + 1, 20)]
    found = {
        done.task["size"]: done
        for done in fleet.map(fleet_episodes.return_much, tasks, tree=fleet.tree(str(tree_root)))
    }
    assert "cannot be sent" in found[FRAME_BYTES + 1].error
    assert [found[size].value for size in (10, 20)] == ["x" * 10, "x" * 20]


@pytest.mark.parametrize(
    "command", ["mkdir -p locked/in; echo x > locked/in/x; chmod 0 locked", "head -c 70000000 /dev/urandom > large"]
)
def test_workspace_that_cannot_be_saved_is_made_again_from_its_calls(
    fleet: Fleet, tree_root: Path, tmp_path: Path, command: str
) -> None:
    task = {"command": command, "marker": str(tmp_path / "died")}
    (done,) = fleet.map(fleet_episodes.fill, [task], tree=fleet.tree(str(tree_root)))
    assert (done.value, done.deaths, done.diverged) == ("1\n2\n3\n4\n", 1, [])


def test_forked_process_cannot_use_workspace_and_ends_with_host(node: str, tree_root: Path, tmp_path: Path) -> None:
    with Fleet(hosts=1, directory=node) as fleet:
        task = {"pid": str(tmp_path / "pid")}
        (done,) = fleet.map(fleet_episodes.fork_away, [task], tree=fleet.tree(str(tree_root)))
        assert done.value == 7
        lasting = int((tmp_path / "pid").read_text())
        os.kill(lasting, 0)
    until(lambda: state_of_process(lasting) in ("", "Z"))


def test_forked_process_does_not_hide_death_of_host(fleet: Fleet, tree_root: Path, tmp_path: Path) -> None:
    tree = fleet.tree(str(tree_root))
    assert next(fleet.map(fleet_episodes.fork_away, [{"pid": str(tmp_path / "pid")}], tree=tree)).ok
    with fleet.open(tree) as ws:
        ws.write_bytes("x", b"1")
        kill_host(fleet)
        started = time.monotonic()
        assert ws.read_bytes("x") == b"1"
        assert time.monotonic() - started < SILENT_SECONDS


@pytest.mark.parametrize("how", ["calls", "waits", "hides"])
def test_episode_over_its_limit_fails_and_others_end(
    how: str, fleet: Fleet, tree_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.model.fleet_limits.GRACE_SECONDS", 1.0)
    tasks = [{"how": how}, {"how": how}]
    found = [*fleet.map(fleet_episodes.never_end, tasks, tree=fleet.tree(str(tree_root)), seconds=0.5)]
    assert [done.error for done in found] == ["the episode took longer than 0.5 seconds"] * 2
    (after,) = fleet.map(fleet_episodes.double, [{"n": 1}], tree=fleet.tree(str(tree_root)), seconds=60)
    assert after.value == 2
