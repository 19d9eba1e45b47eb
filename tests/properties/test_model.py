"""Compares the workspace with a model of it after random events; see support/workspace_model.py."""

import os
import subprocess
import sys

STEPS = 25
EXAMPLES = 400 if os.environ.get("HANDRAIL_LONG") else 20


def test_workspace_random_events_match_model() -> None:
    path = os.pathsep.join(filter(None, sys.path))
    run = subprocess.run(
        [sys.executable, "-m", "support.workspace_model", str(EXAMPLES), str(STEPS)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
