"""Forks children from a process with an open workspace, and checks the commits of the parent.

python children.py ROOT prints the results as JSON. This is a separate program, because a test runner with threads
should not fork.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from faults.scenes import SCENES, Stage, left_over, open_workspace
from support.fault_injection import faults


def in_a_child(act: Callable[[], object]) -> None:
    child = os.fork()
    if not child:
        act()
        os._exit(0)
    os.waitpid(child, 0)


def closes_what_it_inherited(root: str) -> dict[str, int]:
    with open_workspace(root) as workspace:
        SCENES["create"](workspace)
        found = {"before": len(left_over(workspace))}
        in_a_child(workspace.close)
        found["after"] = len(left_over(workspace))
    return found | {"at the end": len(left_over(workspace))}


def writes_too(root: str) -> dict[str, Any]:
    def write(name: str) -> bool:
        return workspace.call("file", "file.write", {"path": name, "content": name}).success

    def write_and_close() -> None:
        write("two")
        workspace.close()

    with open_workspace(root) as workspace:
        answers = [write("one")]
        in_a_child(write_and_close)
        answers.append(write("three"))
    return {"answers": answers, "left": len(left_over(workspace)), "names": sorted(os.listdir(root))}


def is_forked_in_a_commit(root: str) -> dict[str, Any]:
    """Fork at each step of a commit; the child leaves at once, through every open block."""
    stage, parent, wrong = Stage.of("four files", root), os.getpid(), []

    def fork(name: str, real: Any, args: Any, options: Any) -> Any:
        if not (child := os.fork()):
            raise SystemExit
        os.waitpid(child, 0)
        return real(*args, **options)

    for at in range(1, 1000):
        stage.reset()
        workspace = open_workspace(root)
        try:
            with faults(at, fork) as faulty:
                answer = stage.act(workspace)
        except SystemExit:
            workspace.close()
        if os.getpid() != parent:
            os._exit(0)
        workspace.close()
        if (answer, tree := stage.tree(), left_over(workspace)) != (True, "new", []):
            wrong.append([at, answer, tree])
        if not faulty.reached:
            return {"points": at > 10, "wrong": wrong}
    return {}


def lives_on(root: str) -> list[bool]:
    """Fork while the lock is held; the parent writes again before the child ends."""
    reading, writing = os.pipe()

    def fork(name: str, real: Any, args: Any, options: Any) -> Any:
        if not os.fork():
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        return real(*args, **options)

    with open_workspace(root) as workspace:
        with faults(5, fork):
            answers = [SCENES["create"](workspace)]
        answers.append(SCENES["create in new directories"](workspace))
    os.close(writing)
    os.wait()
    return answers


if __name__ == "__main__":
    top = sys.argv[1]
    found: dict[str, Any] = {}
    for scene in (closes_what_it_inherited, writes_too, is_forked_in_a_commit, lives_on):
        os.mkdir(f"{top}/{scene.__name__}")
        found[scene.__name__] = scene(f"{top}/{scene.__name__}")
    print(json.dumps(found))
