"""Approving by rule against one millisecond: no user should notice it."""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import Row, row, show
from handrail import Question, Workspace
from handrail.policy.rules import short_rule
from handrail.surfaces.rule_trial import try_call
from handrail.workspace import internals

ONE_MS = 1.0
ROUNDS = 200
OTHERS = [f"program{number} *" for number in range(40)] + [f"edit directory{number}/**" for number in range(40)]
"""Rules that do not decide: more than most users have."""
RULES = ["git status *", "npm run *", "edit src/**", "fetch docs.python.org"]
CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "an edit": ("file", "file.write", {"path": "src/a.py", "content": "x\n"}),
    "an edit of 1 MB": ("file", "file.write", {"path": "src/a.py", "content": "x" * 1_000_000}),
    "a command": ("codex", "shell", {"command": "git status --short"}),
    "two commands": ("codex", "shell", {"command": "git status && npm run build"}),
    "a fetch": ("copilot", "fetch_webpage", {"url": "https://docs.python.org/3/"}),
}


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        Path(home, "root").mkdir()
        os.environ["HANDRAIL_STATE_DIR"] = f"{home}/state"
        os.environ["HANDRAIL_CONFIG_DIR"] = f"{home}/config"
        with Workspace(f"{home}/root", approve="ask") as workspace:
            asked = {name: try_call(workspace, *call).question for name, call in CALLS.items()}
            for text in (*OTHERS, *RULES):
                internals(workspace).rules.add(short_rule(text), "project")
            return [_approval(workspace, name, question) for name, question in asked.items() if question]


def _approval(workspace: Workspace, name: str, question: Question) -> Row:
    """Measure from the question to the verdict, with the count of the rule's use."""
    decide, times = workspace._default._session.approver, list[float]()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        verdict = decide(question)
        times.append((time.perf_counter() - began) * 1000)
        assert verdict.allowed, verdict
    return row(f"approve {name} by one of {len(OTHERS) + len(RULES)} rules / 1 ms", statistics.median(times), ONE_MS, 1)


if __name__ == "__main__":
    show(__doc__, run())
