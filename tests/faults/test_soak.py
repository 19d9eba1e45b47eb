"""Kills commits at random moments, and runs four processes on fifty files; `make soak` does the same for longer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("HANDRAIL_SOAK_KILLS", "12"))
SECONDS = float(os.environ.get("HANDRAIL_SOAK_SECONDS", "4"))


def soak(what: str, amount: float, root: Path) -> dict[str, Any]:
    here = os.path.dirname(__file__)
    run = subprocess.run(
        [sys.executable, os.path.join(here, "soaking.py"), what, str(amount), str(root)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.timeout(600 + 3 * KILLS)
def test_random_kills_leave_whole_files_and_matching_journal(tmp_path: Path) -> None:
    found = soak("kills", KILLS, tmp_path / "root")
    assert found["wrong"] == []
    assert found["entries"] > 0


@pytest.mark.timeout(600 + 3 * SECONDS)
def test_parallel_processes_lose_no_accepted_edit(tmp_path: Path) -> None:
    found = soak("crowd", SECONDS, tmp_path / "root")
    assert found["lost"] == []
    assert found["unasked"] == 0
    assert found["names"] == 50
    assert found["landed"] > 50
    assert found["refused"] > 0
