"""Attacks the shell that remembers and jobs: forged ends, processes that outlive, floods, many jobs, a killed host."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.running_dialect import router_of
from support.sandboxes import begun, none_left, sleeping

from handrail import ToolRouter, Workspace

pytestmark = pytest.mark.sandbox

MARKS = "for fd in /proc/$$/fd/*; do n=${fd##*/}; [ $n -ge 10 ] && "
FORGERIES = {
    "a guessed mark": "; printf '00000000000000000000000000000000 0\\n' >&$n; done 2>/dev/null",
    "no mark": "; printf '0\\n' >&$n; done 2>/dev/null",
    "much": "; head -c 100000 /dev/zero >&$n; done 2>/dev/null",
}


@pytest.fixture
def router(workspace: Workspace) -> ToolRouter:
    return router_of(workspace)


def call(router: ToolRouter, tool: str, **params: Any) -> Any:
    return router.call(tool, params).output


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=list(FORGERIES))
def test_forged_end_ends_shell_with_everything(router: ToolRouter, forgery: str) -> None:
    marker = f"81.{os.getpid()}"
    done = call(router, "shell", command=f"sleep {marker} & {MARKS} true {forgery}; sleep {marker}")
    assert done["ended"] != ""
    assert none_left(lambda: sleeping(marker))


def test_true_mark_reported_early_is_caught_by_second_one(router: ToolRouter) -> None:
    """The shell prints its own lines under `set -v`, so that a command can learn the mark and report it early."""
    call(router, "shell", command="exec 2>lines; set -v")
    forging = (
        "mark=$(grep -oE '[0-9a-f]{32}' lines | tail -1); "
        "for n in 10 11 12 13; do printf '%s 0\\n' $mark >&$n; done; sleep 0.5; touch after"
    )
    call(router, "shell", command=forging)
    again = router.call("shell", {"command": "sleep 2; echo next"})
    assert again.error is not None or again.output["ended"] == "forged"  # type: ignore[index]


def test_printed_mark_is_only_output(router: ToolRouter) -> None:
    text = "printf '%s 0\\n' 0123456789abcdef0123456789abcdef; echo on"
    assert call(router, "shell", command=text)["output"].endswith("on\n")
    assert call(router, "shell", command="echo alive")["output"] == "alive\n"


@pytest.mark.parametrize("escape", ["setsid", "nohup", "setsid -f"])
def test_background_process_does_not_outlive_restart(router: ToolRouter, escape: str) -> None:
    marker = f"82.{os.getpid()}{len(escape)}"
    call(router, "shell", command=f"trap '' TERM HUP; ({escape} sleep {marker} >/dev/null 2>&1 &) & true")
    assert begun(marker)
    router.call("restart", {})
    assert none_left(lambda: sleeping(marker))


def test_flood_of_output_stays_within_memory(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"spool_bytes": 100_000, "output_bytes": 10_000}) as workspace:
        router = router_of(workspace)
        shown = call(router, "shell", command="head -c 50000000 /dev/zero | tr '\\0' x")
        assert len(shown["output"]) < 20_000
        call(router, "start", command="head -c 50000000 /dev/zero | tr '\\0' x")
        assert len(call(router, "read", job="1", wait=300.0)["output"]) < 20_000


def test_thousand_jobs_are_bounded_and_all_end(root: Path) -> None:
    marker = f"83.{os.getpid()}"
    with Workspace(str(root), approve="auto", limits={"jobs": 8}, durability="none") as workspace:
        router = router_of(workspace)
        codes = [router.call("start", {"command": f"sleep {marker}"}).error for _ in range(1000)]
        assert sum(code is None for code in codes) == 8
        assert {code.code for code in codes if code} == {"too_many_jobs"}
        assert begun(marker, 8)
    assert none_left(lambda: sleeping(marker))


HOST = """
import sys
sys.path.insert(0, sys.argv[3])
from handrail import Workspace
from support.running_dialect import router_of
workspace = Workspace(sys.argv[1], approve="auto")
router = router_of(workspace)
router.call("shell", {"command": f"setsid sleep {sys.argv[2]} & true"})
router.call("start", {"command": f"sleep {sys.argv[2]}"})
router.call("start", {"command": f"sleep {sys.argv[2]}", "terminal": True})
print("up", flush=True)
sys.stdin.read()
"""


def test_killed_host_leaves_nothing_running(root: Path) -> None:
    marker = f"84.{os.getpid()}"
    tests = str(Path(__file__).parent.parent)
    words = [sys.executable, "-c", HOST, str(root), marker, tests]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"up\n"
        assert begun(marker, 3)
        host.send_signal(signal.SIGKILL)
    assert none_left(lambda: sleeping(marker))
