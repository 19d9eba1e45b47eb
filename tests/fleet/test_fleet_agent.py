"""Tests the agent's own episode: it works on tasks, is judged, and goes on after the death of its host."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from handrail.fleet import Fleet
from handrail.fleet.agent_episode import NAME

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="handrail[agent] is not installed: make test-fleet"),
]


def script(path: Path, *turns: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"


def shell(command: str) -> dict[str, Any]:
    return {"text": "I run.", "calls": [{"tool": "shell", "arguments": {"command": command}}]}


def test_agent_episode_works_is_checked_and_has_trajectory(fleet: Fleet, tree_root: Path, tmp_path: Path) -> None:
    model = script(tmp_path / "script", shell("echo x > made"), {"text": "Made."})
    tasks = [
        {"prompt": "make", "model": model, "dialect": "codex", "check": f"test -f {name}"}
        for name in ("made", "nothing")
    ]
    found = sorted(fleet.map(NAME, tasks, tree=fleet.tree(str(tree_root))), key=lambda done: done.task["check"])
    assert [done.value["passed"] for done in found] == [True, False]
    assert found[0].value["answer"] == "Made."
    assert found[0].value["trajectory"]["schema_version"].startswith("ATIF")


def test_agent_whose_host_dies_goes_on_with_its_trajectory(fleet: Fleet, tree_root: Path, tmp_path: Path) -> None:
    """A program outside the sandbox would be needed to kill the host, so the script waits until the test does it."""
    import os
    import signal
    import threading

    turns = [shell(f"echo {number} >> log") for number in range(7)]
    model = script(tmp_path / "script", *turns, {"text": "Done."})
    seen = 0
    killed = threading.Event()

    def on_event(event: dict[str, Any]) -> None:
        nonlocal seen
        seen += event["event"] == "logged"
        if seen == 5 and not killed.is_set():
            killed.set()
            os.kill(int(fleet.hosts[0].rpartition("-")[2]), signal.SIGKILL)

    task = {"prompt": "count", "model": model, "dialect": "codex", "check": "cat log"}
    (done,) = fleet.map(NAME, [task], tree=fleet.tree(str(tree_root)), on_event=on_event)
    assert done.ok, done
    assert done.deaths == 1
    assert done.value["check_output"].split() == [str(number) for number in range(7)]
    assert len([step for step in done.value["trajectory"]["steps"] if step["source"] == "agent"]) == 8
