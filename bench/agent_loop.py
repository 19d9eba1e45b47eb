"""The loop of `handrail agent`: what a step costs besides its call, with a scripted model, against 2 ms."""

import importlib.util
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import Row, row
from handrail import Workspace

STEPS = 50
ROUNDS = 9
LIMIT_MS = 2.0
READ: dict[str, Any] = {"tool": "file.read", "arguments": {"path": "a.txt"}}


def run() -> list[Row]:
    if importlib.util.find_spec("pydantic_ai") is None:
        print("\nagent_loop: skipped, handrail[agent] is not installed: make bench-agent")
        return []
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        root = Path(home) / "root"
        root.mkdir()
        (root / "a.txt").write_text("a line of text\n" * 50)
        with Workspace(str(root), approve="auto") as workspace:
            own = [_loop_ms(workspace, home) - _calls_ms(workspace) for _ in range(ROUNDS + 1)][1:]
    return [row(f"a step of {STEPS}, without its call / 2 ms", statistics.median(own), LIMIT_MS, 1.0)]


def _loop_ms(workspace: Workspace, home: str) -> float:
    from handrail.agent import Agent, Budget
    from handrail.chat.scripted import ScriptedModel

    turns: list[dict[str, Any]] = [{"text": "I read.", "calls": [READ]}] * STEPS
    agent = Agent(
        workspace,
        ScriptedModel([*turns, {"text": "Done."}]),
        dialect="file",
        budget=Budget(steps=None),
        trajectory=f"{home}/trajectory.json",
    )
    started = time.perf_counter()
    assert agent.run("read").status == "done"
    return (time.perf_counter() - started) / STEPS * 1000


def _calls_ms(workspace: Workspace) -> float:
    tools = workspace.tools("file")
    started = time.perf_counter()
    for _ in range(STEPS):
        assert tools.call(READ["tool"], READ["arguments"]).success
    return (time.perf_counter() - started) / STEPS * 1000
