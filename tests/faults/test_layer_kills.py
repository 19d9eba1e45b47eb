"""Kills a process that writes and forks in a layer, at random moments: parent and finished forks are whole then."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.layers import needs_overlays

from handrail import Workspace
from handrail.kernel.layers.layer_store import LayerStore

pytestmark = needs_overlays
CHILD = str(Path(__file__).with_name("killing_layers.py"))


@pytest.mark.parametrize("seed", range(6))
def test_killed_process_leaves_whole_layers_and_nothing_else(root: Path, seed: int) -> None:
    (root / "base").write_text("base\n")
    said = killed_child(root, seed)
    written = max(int(words[1]) for words in said if words[0] == "wrote")
    closed = {words[1] for words in said if words[0] == "closed"}
    forks = {words[1]: int(words[2]) for words in said if words[0] == "forked" and words[1] not in closed}
    store = LayerStore(os.path.realpath(root))
    with Workspace(root, approve="auto", layered=True, sandbox="off") as parent:
        assert kept(parent) >= set(range(written + 1))
        assert parent.read_bytes("base") == b"base\n"
        parent.write_bytes("after", b"x")
        assert parent.exec(["cat", f"kept/{written}"]).stdout == str(written).encode()
    for name, number in forks.items():
        if store.record(name) is None:  # it was being closed
            continue
        with Workspace(root, approve="auto", layered=name, sandbox="off") as fork:
            assert kept(fork) == set(range(number + 1))
            assert fork.history().entries(1)[0].entry.files[-1].path == f"kept/{number}"
    assert os.listdir(root) == ["base"]
    assert str(root) not in Path("/proc/self/mounts").read_text()
    store.sweep()
    whole = set(store.names())
    assert set(os.listdir(f"{store.path}/named")) == whole
    needed = {each for name in whole if (record := store.record(name)) for each in record.frozen}
    assert set(os.listdir(f"{store.path}/frozen")) == needed


def kept(workspace: Workspace) -> set[int]:
    place = f"/proc/self/fd/{workspace._services.boundary.fd}/kept"
    found = {int(name): Path(place, name).read_text() for name in os.listdir(place) if not name.startswith(".")}
    assert all(str(number) == text for number, text in found.items())
    return set(found)


def killed_child(root: Path, seed: int) -> list[list[str]]:
    """Start the child, kill it a while after its first write, and return the words of each line that it has printed."""
    words = [sys.executable, "-P", CHILD, str(root), str(seed)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        lines = [child.stdout.readline() for _ in range(2)]
        time.sleep(random.Random(seed).uniform(0, 0.6))
        child.kill()
        lines += child.stdout.read().split("\n")
    return [line.split() for line in lines if line.endswith("\n") or line]


METHODS = ("apply", "discard", "fork", "snapshot", "open", "commit", "prune")
POINTS = "1000" if os.environ.get("HANDRAIL_LONG") else "4"


@pytest.mark.sandbox  # an image needs one
@pytest.mark.parametrize("method", METHODS)
def test_method_killed_at_any_change_leaves_all_whole(method: str, tmp_path: Path) -> None:
    words = [sys.executable, "-P", str(Path(CHILD).with_name("killing_layer_steps.py")), method, str(tmp_path), POINTS]
    tests = str(Path(__file__).parent.parent)
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": tests}, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["wrong"] == {}
    assert 2 * said["killed"] > said["points"]
