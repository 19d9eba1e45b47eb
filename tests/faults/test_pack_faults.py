"""Kills processes that store, compress and prune contents: nothing that was stored gets lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = os.path.dirname(__file__)
SECONDS = float(os.environ.get("HANDRAIL_SOAK_SECONDS", "4"))


def run(*argv: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, *filter(None, sys.path)])}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(600)
def test_process_killed_at_any_change_of_a_pack_loses_nothing(tmp_path: Path) -> None:
    found = run(sys.executable, f"{HERE}/killing_packs.py", str(tmp_path / "blobs"))
    assert found["wrong"] == []
    assert min(found["kills"].values()) > 5, found["kills"]


@pytest.mark.slow
@pytest.mark.timeout(600 + 3 * SECONDS)
def test_killed_writers_and_pruner_lose_no_confirmed_entry(tmp_path: Path) -> None:
    found = run(sys.executable, f"{HERE}/pack_crowd.py", str(SECONDS), str(tmp_path / "root"))
    assert found["wrong"] == []
    assert found["kills"] > 0


def test_disk_that_is_really_full_loses_no_content(tmp_path: Path) -> None:
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    enter = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    trial = [*enter, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run(trial, check=False).returncode:
        pytest.skip("mounting takes a mount namespace, which this machine does not give")
    argv = [*enter, "sh", "-c", script, str(tmp_path), sys.executable, f"{HERE}/full_disk.py", str(tmp_path)]
    found = run(*argv)
    assert found["wrong"] == []
    assert found["accepted"] > 50
    assert found["refused"] > 10
