"""Sets the clock back and forward while a session works."""

import time
from pathlib import Path

import pytest

from handrail import Workspace

DAY = 86_400


def test_clock_jumps_do_not_disturb_edits_commands_or_undo(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, path = time.time, "a.txt"
    assert workspace.call("file", "file.write", {"path": path, "content": "0\n"}).success
    for number, jump in enumerate((-3650 * DAY, 30 * DAY, -1), 1):
        monkeypatch.setattr(time, "time", lambda jump=jump: right() + jump)
        patch = {"path": path, "patches": [{"find": f"{number - 1}\n", "replace": f"{number}\n"}]}
        assert workspace.call("file", "file.patch", patch).success
        ran = workspace.call("codex", "shell", {"command": f"cat {path}", "timeout_ms": 60_000})
        assert isinstance(ran.output, dict)
        assert (ran.output["stdout"], ran.output["timeout"]) == (f"{number}\n", False)
    history = workspace.history()
    assert [each.n for each in history.entries()] == [4, 3, 2, 1]
    for left in (2, 1, 0):
        assert history.undo().done
        assert (root / path).read_text() == f"{left}\n"


def test_command_timeout_works_when_clock_is_set_back(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(10**9, 0, -DAY))
    monkeypatch.setattr(time, "time", lambda: float(next(times)))
    ran = workspace.call("codex", "shell", {"command": "sleep 600", "timeout_ms": 100})
    assert isinstance(ran.output, dict)
    assert ran.output["timeout"] is True
