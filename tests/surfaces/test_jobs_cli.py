"""`handrail jobs`, as a user uses it beside live sessions."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.command_line import in_process as handrail
from support.running_dialect import router_of

from handrail import Workspace
from handrail.kernel.host.state_dir import State

NONE = "No live session has jobs.\n"

HOST = """
import sys
sys.path.insert(0, sys.argv[1])
from handrail import Workspace
from support.running_dialect import router_of
with Workspace(sys.argv[2], approve="auto", sandbox="off") as workspace:
    router = router_of(workspace)
    assert not router.call("start", {"command": "exit 3", "wait": 300.0}).output["running"]
    assert router.call("start", {"command": sys.argv[3]}).success
    print("up", flush=True)
    sys.stdin.read()
"""


@contextmanager
def session(root: Path, command: str = "sleep 600") -> Iterator["subprocess.Popen[bytes]"]:
    """Run a session with one ended job and one that runs, in another process; it ends with its standard input."""
    words = [sys.executable, "-c", HOST, str(Path(__file__).parent.parent), str(root), command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"up\n"
        yield host


def listed(root: Path) -> str:
    done = handrail("jobs", "--root", str(root))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def as_json(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(handrail("jobs", "--json", "--root", str(root)).stdout)["jobs"]
    return found


def records(root: Path) -> list[Path]:
    return sorted(Path(State.of(str(root)).path, "jobs").glob("*"))


def test_jobs_live_session_of_other_process_is_listed(root: Path) -> None:
    assert listed(root) == NONE
    with session(root):
        first, second = listed(root).splitlines()
        assert re.fullmatch(r"\d{8}-\d{6}-\w+  1  exit 3  \d+[smh]  exit 3", first)
        assert re.fullmatch(r"\d{8}-\d{6}-\w+  2  running  \d+[smh]  sleep 600", second)
        assert [(job["number"], job["running"], job["exit_code"]) for job in as_json(root)] == [
            (1, False, 3),
            (2, True, None),
        ]
        (record,) = records(root)
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert listed(root) == NONE
    assert records(root) == []


def test_jobs_killed_session_is_not_listed_and_record_goes(root: Path) -> None:
    with session(root) as host:
        host.send_signal(signal.SIGKILL)
    assert len(records(root)) == 1
    assert listed(root) == NONE
    assert records(root) == []


def test_jobs_next_session_removes_record_of_killed_one(root: Path) -> None:
    with session(root) as host:
        host.send_signal(signal.SIGKILL)
    (left,) = records(root)
    with session(root):
        assert left not in records(root)


def test_jobs_hostile_command_is_shown_escaped(root: Path) -> None:
    with session(root, "sleep 600 # \x1b[2J\x1b]0;owned\x07\nsecond\u202eline\r"):
        shown = listed(root)
        assert shown.endswith("sleep 600 # \\x1b[2J\\x1b]0;owned\\x07\\nsecond\\u202eline\\x0d\n")
        assert len(shown.splitlines()) == 2


def test_jobs_of_other_workspace_are_not_shown(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with session(other):
        assert listed(root) == NONE
        assert len(as_json(other)) == 2


def test_jobs_of_two_sessions_are_listed_apart(root: Path) -> None:
    with session(root), Workspace(str(root), approve="auto", sandbox="off") as workspace:
        router_of(workspace).call("start", {"command": "sleep 600"})
        assert len({job["session"] for job in as_json(root)}) == 2


def test_jobs_record_cut_by_full_disk_is_left_out(root: Path) -> None:
    with session(root):
        (record,) = records(root)
        os.truncate(record, 10)
        assert listed(root) == NONE
        assert records(root) == [record]
