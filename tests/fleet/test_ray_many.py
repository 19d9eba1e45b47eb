"""Runs 500 tasks of a scripted model on Ray nodes, one of which is killed in the middle (`make soak-fleet`)."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from fleet.ray_cluster import RayCluster, hosts_below, until

MANY = int(os.environ.get("HANDRAIL_FLEET_TASKS", "0"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MANY, reason="it takes minutes: make soak-fleet"),
    pytest.mark.skipif(find_spec("ray") is None, reason="handrail[fleet] is not installed: make soak-fleet"),
]


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    made = RayCluster(Path("/tmp") / f"hm-{os.getpid()}")
    try:
        for number in (1, 2, 3):
            made.add(number)
        yield made
    finally:
        made.close()


def test_run_of_many_tasks_with_killed_node_gives_all_results(cluster: RayCluster, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    turns = [
        {"text": "I look.", "calls": [{"tool": "shell", "arguments": {"command": "cat calc.py"}}]},
        {
            "text": "I mend it.",
            "calls": [{"tool": "shell", "arguments": {"command": "sed -i 's/a - b/a + b/' calc.py"}}],
        },
        {"text": "Mended."},
    ]
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    tasks = [{"id": f"t{n:03}", "tree": "tree", "prompt": "mend it"} for n in range(MANY)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    out = tmp_path / "out"
    check = "python3 -c 'import calc; assert calc.add(2, 3) == 5'"
    words = ["--model", f"scripted:{tmp_path}/script.jsonl", "--dialect", "codex", "--check", check, "--out", str(out)]
    options = ["--on", "ray", "--address", cluster.address, "--hosts", "3", "--per-host", "16"]
    argv = [sys.executable, "-P", "-m", "handrail", "fleet", "run", str(tmp_path / "tasks.jsonl"), *words, *options]
    results = out / "results.jsonl"

    def strike() -> None:
        until(lambda: results.exists() and results.read_text().count("\n") >= MANY * 2 // 5, 900)
        cluster.kill_node(next(iter(cluster.nodes)))

    striking = threading.Thread(target=strike)
    striking.start()
    environment = {**os.environ, **cluster.variables, "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    striking.join()
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert sorted(each["task"] for each in found) == [task["id"] for task in tasks]
    assert all(each["passed"] for each in found)
    assert any(each["deaths"] for each in found)
    until(lambda: not hosts_below(str(tmp_path)))
