"""Kill a scene at its every change, then its recovery at its every change, and look what is left.

python killing.py SCENE ROOT STRIDE [MISSING CALL ...] prints how many points there were and all that went wrong, as
JSON. It is a program of its own because it forks, which a test runner with threads should not.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator

from faults.scenes import Stage, left_over, open_workspace
from support.fault_injection import Act, faults, killed, killed_in_the_middle


def survives(act: Callable[[], None]) -> bool:
    """Run it in a process of its own; False where that was killed."""
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
    """What the next open makes of it."""
    with faults(0, killed, missing=stage.missing), open_workspace(stage.root) as workspace:
        tree = stage.tree()
        entered = workspace._services.journal.last_number() - stage.entries
    if entered != (tree == "new"):
        return f"{tree}, and the journal has {entered} entries of it"
    return f"{tree}, left: {left}" if (left := left_over(workspace)) else tree


def run(scene: str, root: str, stride: int, *missing: str) -> dict[str, object]:
    """With a stride above 1 only every so many pairs of (point, point in the recovery from it) are tried."""
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
