"""Episodes that hosts import in tests."""

import os
import signal
import time
from pathlib import Path
from typing import Any

STEPS = 30


def append_steps(ws: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Append one line a step; return the lines."""
    for number in range(task.get("steps", STEPS)):
        done = ws.call("codex", "shell", {"command": f"echo {number} >> log.txt"})
        assert done.success, done
        time.sleep(task.get("pause", 0))
    return {"lines": ws.read_bytes("log.txt").decode().split()}


def double(ws: Any, task: dict[str, Any]) -> Any:
    ws.write_bytes("n.txt", str(task["n"] * 2).encode())
    return int(ws.read_bytes("n.txt"))


def fail_first(ws: Any, task: dict[str, Any]) -> str:
    """Fail until a file outside the workspace has as many lines as the task says."""
    path = Path(task["marker"])
    with path.open("a") as file:
        file.write("x\n")
    ws.write_bytes("left.txt", b"x")
    if len(path.read_text().split()) <= task["failures"]:
        raise RuntimeError("not yet")
    return str(ws.exec(["ls"]).stdout.decode(errors="replace"))


def die_once(ws: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Kill the own host in the middle, the first time."""
    for number in range(task["steps"]):
        assert ws.call("codex", "shell", {"command": f"echo {number} >> log.txt"}).success
        marker = Path(task["marker"])
        if number == task["at"] and not marker.exists():
            marker.write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)
    return {"lines": ws.read_bytes("log.txt").decode().split()}


def change_mind(ws: Any, task: dict[str, Any]) -> list[str]:
    """Make other calls after the death of the host than before."""
    marker = Path(task["marker"])
    word = "after" if marker.exists() else "before"
    for number in range(6):
        try:
            ws.call("codex", "shell", {"command": f"echo {word} {number} >> log.txt"})
        except Exception:
            return ["hidden"]
    if word == "before":
        marker.write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return [str(line) for line in ws.read_bytes("log.txt").decode().splitlines()]
