"""Kills an undo to a mark at each of its changes, and checks that all of it happened or nothing.

python killing_undo.py DIRECTORY prints the number of points and everything that went wrong, as JSON.
"""

import json
import sys
from pathlib import Path

from faults.killing import survives
from support.fault_injection import faults, killed
from support.tree import Tree, snapshot

from handrail import Workspace


def write(workspace: Workspace, name: str, content: str) -> None:
    assert workspace.call("file", "file.write", {"path": name, "content": content}).success


def prepare(root: Path) -> tuple[Tree, Tree]:
    """Make a workspace with a mark and changes after it; return the trees at the mark and now."""
    (root / "sub").mkdir(parents=True)
    with Workspace(root, approve="auto", log_level="off") as workspace:
        write(workspace, "a.txt", "one\n")
        write(workspace, "sub/gone.txt", "here\n")
        workspace.mark("begin")
        marked = snapshot(str(root))
        write(workspace, "a.txt", "two\n")
        write(workspace, "fresh/deep/b.txt", "new\n")
        assert workspace.call("file", "file.delete", {"path": "sub/gone.txt"}).success
        write(workspace, "a.txt", "three\n")
    return marked, snapshot(str(root))


def judge(root: Path, marked: Tree, changed: Tree) -> str:
    """Open the workspace again; return what is wrong, or an empty text."""
    with Workspace(root, approve="auto", log_level="off") as workspace:
        now = snapshot(str(root))
        undone = workspace.history().entries(1)[0].entry.origin.kind == "undo"
        if now not in (marked, changed) or undone != (now == marked):
            return f"undone: {undone}, tree: {sorted(now)}"
        if not undone:
            assert workspace.history().undo(to="begin").done
    return "" if snapshot(str(root)) == marked else "the repeated undo went wrong"


def run(directory: Path) -> dict[str, object]:
    wrong: list[str] = []
    for at in range(1, 1000):
        root = directory / str(at)
        marked, changed = prepare(root)
        workspace = Workspace(root, approve="auto", log_level="off")

        def act(workspace: Workspace = workspace, at: int = at) -> None:
            with faults(at, killed):
                workspace.history().undo(to="begin")

        done = survives(act)
        workspace._services.close()
        if done:
            return {"points": at - 1, "wrong": wrong}
        if found := judge(root, marked, changed):
            wrong.append(f"killed at {at}: {found}")
    return {"points": 1000, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
