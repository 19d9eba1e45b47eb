"""Checks that old session logs and old intents are removed too."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.kernel.host.state_dir import State
from handrail.model.limits import DAY, Limits


def file_of_age(path: Path, days: float) -> Path:
    path.write_text("{}\n")
    moment = time.time() - days * DAY
    os.utime(path, (moment, moment))
    return path


@pytest.mark.parametrize("journal", ["on", "off"])
def test_old_session_logs_are_removed_once_a_day(root: Path, journal: Any) -> None:
    state, kept_for = State.of(str(root)), Limits().journal_days
    old = file_of_age(Path(state.session_log("old")), kept_for + 1)
    young = file_of_age(Path(state.session_log("young")), kept_for - 1)
    with Workspace(str(root), journal=journal) as workspace:
        pruned = workspace._services.journal.pruned
    assert (old.exists(), young.exists()) == (False, True)
    assert len(os.listdir(state.sessions)) == 2
    file_of_age(old, kept_for + 1)
    Workspace(str(root), journal=journal).close()
    assert old.exists()
    os.utime(pruned, (0, 0))
    Workspace(str(root), journal=journal).close()
    assert not old.exists()


def test_old_intent_is_removed_unless_its_process_runs(root: Path) -> None:
    state, kept_for = State.of(str(root)), Limits().journal_days
    facts = '{"root": [1, 1], "steps": [], "made": ["a"], "gone": [], "line": ""}\n'
    waiting = {days: Path(state.pending, f"{days}") for days in (kept_for - 1, kept_for + 1)}
    for days, path in waiting.items():
        path.write_text(facts)
        os.utime(path, (time.time() - days * DAY,) * 2)
    with Workspace(str(root), approve="auto") as living:
        assert living.call("file", "file.write", {"path": "a", "content": "a"}).success
        (own,) = set(os.listdir(state.pending)) - {path.name for path in waiting.values()}
        os.utime(Path(state.pending, own), (0, 0))
        Workspace(str(root)).close()
        assert set(os.listdir(state.pending)) == {own, f"{kept_for - 1}"}
