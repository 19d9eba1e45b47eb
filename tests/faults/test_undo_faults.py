"""Kills an undo to a mark everywhere: all of it happened, or nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_kill_during_undo_to_mark_leaves_all_or_nothing(tmp_path: Path) -> None:
    here = os.path.dirname(__file__)
    run = subprocess.run(
        [sys.executable, os.path.join(here, "killing_undo.py"), str(tmp_path)],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join([here, *sys.path])},
        capture_output=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert found["wrong"] == []
    assert found["points"] >= 20
