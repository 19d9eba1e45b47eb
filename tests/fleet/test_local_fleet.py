"""Tests a fleet on this machine, driven from outside: calls once for each id, restored workspaces, forks, snapshots."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet.conftest import kill_host
from support.layers import needs_overlays

from handrail.errors import ClosedError
from handrail.fleet import DivergedError, Fleet, FleetError, FleetSnapshot
from handrail.fleet.fleet_errors import CallIdError, UnsavableError
from handrail.fleet.ledger import Ledger

pytestmark = pytest.mark.sandbox


def echo(text: str) -> dict[str, str]:
    return {"command": f"echo {text} >> log.txt"}


def test_fleet_call_works_in_copy_of_tree(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        assert "ran" in ws.call("codex", "shell", {"command": "src/run.sh; rm a.txt"}).text
        assert not ws.call("file", "file.read", {"path": "a.txt"}).success
        assert ws.exec(["cat"], stdin=b"\xff").stdout == b"\xff"
    assert (tree_root / "a.txt").exists()


def test_fleet_repeated_id_has_one_effect_and_one_answer(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        first = ws.call("codex", "shell", echo("x"), id="7")
        again = ws.call("codex", "shell", echo("x"), id="7")
        assert first == again
        assert ws.read_bytes("log.txt") == b"x\n"
        with pytest.raises(CallIdError, match="7"):
            ws.call("codex", "shell", echo("y"), id="7")


def test_fleet_same_id_from_many_threads_has_one_effect(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        threads = [
            threading.Thread(target=ws.call, args=("codex", "shell", echo("x")), kwargs={"id": "1"}) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ws.read_bytes("log.txt") == b"x\n"


def test_fleet_calls_batch_answers_in_order(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        ws.write_bytes("n.txt", b"1")
        batch = [("file", "file.read", {"path": name}) for name in ("a.txt", "n.txt", "missing")]
        assert [each.success for each in ws.calls(batch)] == [True, True, False]


@pytest.mark.parametrize("before", [2, 3, 7])
def test_workspace_of_killed_host_goes_on_with_each_call_once(
    fleet: Fleet, tree_root: Path, before: int, left: Callable[[], list[str]]
) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        for number in range(before):
            ws.call("codex", "shell", echo(str(number)), id=str(number))
        kill_host(fleet)
        for number in range(before + 4):
            assert ws.call("codex", "shell", echo(str(number)), id=str(number)).success
        assert ws.read_bytes("log.txt").decode().split() == [str(number) for number in range(before + 4)]
    assert fleet.host_deaths == 1
    fleet.close()
    assert left() == []


def test_calls_in_flight_when_host_dies_are_made_once(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        wait = {"command": "until test -e go; do sleep 0.05; done; echo done >> log.txt"}
        waiting = threading.Thread(target=ws.call, args=("codex", "shell", wait), kwargs={"id": "wait"})
        waiting.start()
        ws.call("codex", "shell", echo("first"))
        kill_host(fleet)
        ws.write_bytes("go", b"")
        waiting.join()
        assert sorted(ws.read_bytes("log.txt").decode().split()) == ["done", "first"]


def test_call_with_other_result_on_restored_workspace_diverges(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        assert ws.exec(["cat", "/proc/sys/kernel/random/uuid"]).ok
        kill_host(fleet)
        for _ in range(2):  # it is never silent, not even the second time
            with pytest.raises(DivergedError) as caught:
                ws.exec(["true"])
        assert caught.value.differences[0][1].startswith("output")


def test_restored_session_knows_files_that_it_read(fleet: Fleet, tree_root: Path) -> None:
    """`claude-code` edits only what was read: also after the read lies before the saved state."""
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        path = f"{ws.root}/a.txt"
        assert ws.call("claude-code", "Read", {"file_path": path}).success
        ws.snapshot()
        kill_host(fleet)
        edit = {"file_path": path, "old_string": "one", "new_string": "1"}  # the path on the host that died
        assert ws.call("claude-code", "Edit", edit).success
        assert ws.read_bytes("a.txt") == b"1\ntwo\n"


def test_forks_begin_equal_and_live_apart(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        ws.write_bytes("common", b"1")
        one, two = ws.fork(2)
        one.write_bytes("own", b"2")
        assert two.read_bytes("common") == b"1"
        assert not two.exec(["test", "-e", "own"]).ok
        kill_host(fleet)
        assert one.read_bytes("own") == b"2"
        assert not ws.exec(["test", "-e", "own"]).ok


def test_snapshot_file_opens_equal_workspace_in_another_fleet(fleet: Fleet, tree_root: Path, tmp_path: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        ws.exec(["sh", "-c", "rm a.txt; echo new > b.txt"])
        made = ws.snapshot()
        assert ws.snapshot().id == made.id
        made.save(str(tmp_path / "snapshot"))
    fleet.close()
    with Fleet(hosts=1, directory=str(tmp_path / "other")) as second:
        second.tree(str(tree_root))
        with second.open(FleetSnapshot.load(str(tmp_path / "snapshot"))) as ws:
            assert ws.exec(["sh", "-c", "cat b.txt; test ! -e a.txt"]).stdout == b"new\n"


def test_snapshot_that_was_changed_is_refused(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        ws.write_bytes("b", b"1")
        good = ws.snapshot()
        ws.write_bytes("b", b"2")
        other = ws.snapshot()
    mixed = good._replace(state={**good.state, "pack": other.state["pack"]})
    with pytest.raises(FleetError, match="does not hold"):
        fleet.open(mixed)


def test_restored_workspace_has_no_mount_points_of_sandbox_before(fleet: Fleet, tree_root: Path) -> None:
    """A sandbox makes directories for names that commands may not create; they are no part of a state."""
    with fleet.open(fleet.tree(str(tree_root))) as ws, fleet.open(ws.snapshot()) as fresh:
        before = fresh.exec(["true"])
        assert before.ok
        assert ws.exec(["true"]).ok
        with fleet.open(ws.snapshot()) as restored:
            assert ws.snapshot().id == restored.snapshot().id == fresh.snapshot().id


def test_snapshot_while_terminal_runs_is_refused(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        assert ws.call("codex", "terminal", {"command": "cat", "action": "start"}).tool
        ws.call("claude", "bash", {"command": "cd src"})
        with pytest.raises(UnsavableError, match="program"):
            ws.snapshot()


def test_workspace_cannot_see_its_neighbour(fleet: Fleet, tree_root: Path) -> None:
    tree = fleet.tree(str(tree_root))
    with fleet.open(tree) as one, fleet.open(tree) as two:
        one.write_bytes("secret", b"secret")
        seen = two.exec(["sh", "-c", f"cat {one.root}/secret; ls {one.root}/.. {one.root}/../.."])
        assert b"secret" not in seen.stdout
        assert not two.call("file", "file.read", {"path": f"{one.root}/secret"}).success
        assert not two.call("file", "file.read", {"path": f"../{one.root.rpartition('/')[2]}/secret"}).success


def test_host_has_no_room_opens_elsewhere_or_waits(node: str, tree_root: Path) -> None:
    with Fleet(hosts=2, per_host=1, directory=node) as fleet:
        tree = fleet.tree(str(tree_root))
        one, two = fleet.open(tree), fleet.open(tree)
        opened: list[str] = []
        third = threading.Thread(target=lambda: opened.append(fleet.open(tree).root))
        third.start()
        assert not opened
        one.close()
        third.join()
        assert len(opened) == 1
        two.close()


def test_closed_workspace_and_fleet_refuse_calls_and_leave_nothing(
    node: str, tree_root: Path, left: Callable[[], list[str]]
) -> None:
    fleet = Fleet(hosts=2, directory=node)
    ws = fleet.open(fleet.tree(str(tree_root)))
    ws.exec(["sh", "-c", "mkdir -p locked/in; chmod 0 locked; sleep 100 & "])
    ws.close()
    with pytest.raises(ClosedError):
        ws.exec(["true"])
    fleet.open(fleet.tree(str(tree_root))).exec(["true"])
    pids = [name.rpartition("-")[2] for name in fleet.hosts]
    fleet.close()
    with pytest.raises(ClosedError):
        fleet.open("0" * 64)
    assert left() == []
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_unknown_tree_and_engine_are_named(fleet: Fleet) -> None:
    with pytest.raises(FleetError, match="no tree"):
        fleet.open("0" * 64)
    with pytest.raises(FleetError, match="unknown engine"):
        Fleet("kubernetes")


def test_ledger_refuses_events_of_earlier_epoch() -> None:
    ledger = Ledger("t")
    old = ledger.next_lease()
    entry = {"id": "1", "dialect": "raw", "tool": "exec", "params": {}, "answer": {}}
    assert ledger.take({"event": "logged", "epoch": old, "entry": entry})
    ledger.next_lease()
    saved = {"id": "s", "calls": ["1"], "root": "/r"}
    assert not ledger.take({"event": "saved", "epoch": old, "saved": saved})
    assert not ledger.take({"event": "logged", "epoch": old, "entry": {**entry, "id": "2"}})
    asked = ledger.request(with_answers=True)
    assert [each["id"] for each in asked["redo"]] == ["1"]
    assert asked["saved"] is None


def test_ledger_call_answered_after_saved_state_is_not_made_again() -> None:
    ledger = Ledger("t")
    ledger.next_lease()
    entry = {"id": "1", "dialect": "raw", "tool": "exec", "params": {}, "answer": {}}
    ledger.save({"id": "s", "calls": ["1"], "root": "/r"})
    ledger.log(entry)
    asked = ledger.request(with_answers=True)
    assert asked["redo"] == []
    assert asked["answers"] == [entry]


def test_host_refuses_call_of_earlier_epoch(fleet: Fleet, tree_root: Path) -> None:
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        request = {
            "op": "call",
            "workspace": ws.name,
            "dialect": "codex",
            "tool": "shell",
            "params": echo("x"),
            "id": "1",
        }
        slot = fleet._pool.slots[0]
        with pytest.raises(FleetError, match="epoch"):
            slot.ask({**request, "epoch": 0})
        assert not ws.exec(["test", "-e", "log.txt"]).ok


@needs_overlays
def test_workspace_is_overlay_that_copies_nothing(fleet: Fleet, tree_root: Path, node: str) -> None:
    (tree_root / "large").write_bytes(bytes(3_000_000))
    with fleet.open(fleet.tree(str(tree_root))) as ws:
        assert ws.copied == fleet.copied == ""
        assert ws.exec(["sh", "-c", "wc -c < large; rm a.txt; echo x > new"]).stdout == b"3000000\n"
        (layer,) = Path(node).rglob("*.layer")
        assert sorted(path.name for path in (layer / "upper").iterdir() if not path.is_dir()) == ["a.txt", "new"]
    assert not [*Path(node).rglob("*.layer")]
