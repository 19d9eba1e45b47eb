"""Kills a scene at each of its changes, then its recovery at each of its changes, and checks the result.

python killing.py SCENE ROOT STRIDE [MISSING CALL ...] prints the number of points and everything that went wrong, as
JSON. This is a separate program, because a test runner with threads should not fork.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator

from faults.scenes import Stage, left_over, open_workspace
from support.fault_injection import Act, faults, killed, killed_in_the_middle


def survives(act: Callable[[], None]) -> bool:
    """Run `act` in its own process; return False if the process was killed."""
    child = os.fork()
    if not child:
        act()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert status == 0, status
    return True


def play(stage: Stage, at: int, how: Act) -> bool:
    workspace = open_workspace(stage.root)
    stage.entries = workspace._services.journal.last_number()

    def act() -> None:
        with faults(at, how, missing=stage.missing):
            stage.act(workspace)

    done = survives(act)
    workspace._services.close()
    return done


def recover(stage: Stage, at: int) -> bool:
    def act() -> None:
        with faults(at, killed, missing=stage.missing):
            open_workspace(stage.root).close()

    return survives(act)


def verdict(stage: Stage) -> str:
    """Open the workspace again; return "old", "new" or a description of what is wrong."""
    with faults(0, killed, missing=stage.missing), open_workspace(stage.root) as workspace:
        tree = stage.tree()
        entered = workspace._services.journal.last_number() - stage.entries
    if entered != (tree == "new"):
        return f"{tree}, and the journal has {entered} entries of it"
    return f"{tree}, left: {left}" if (left := left_over(workspace)) else tree


def run(scene: str, root: str, stride: int, *missing: str) -> dict[str, object]:
    """Try pairs of a kill in the commit and a kill in its recovery; a stride of n tries only every n-th pair."""
    stage = Stage.of(scene, root, missing)
    wrong: list[str] = []
    points = sum(1 for _ in kill_everywhere(stage, killed_in_the_middle, wrong))
    recoveries = 0
    for at in kill_everywhere(stage, killed, wrong):
        points += 1
        for again in range(1 + at % stride, 1000, stride):
            stage.reset()
            play(stage, at, killed)
            if recover(stage, again):
                break
            recoveries += 1
            judge(stage, f"killed at {at}, then in recovery at {again}", wrong)
    return {"points": points, "recoveries": recoveries, "wrong": wrong}


def kill_everywhere(stage: Stage, how: Act, wrong: list[str]) -> Iterator[int]:
    for at in range(1, 1000):
        stage.reset()
        if play(stage, at, how):
            return
        judge(stage, f"{how.__name__} at {at}", wrong)
        yield at


def judge(stage: Stage, when: str, wrong: list[str]) -> None:
    if (found := verdict(stage)) not in ("old", "new"):
        wrong.append(f"{when}: {found}")


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])))
