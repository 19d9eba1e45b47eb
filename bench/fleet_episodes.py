"""Episodes that hosts import in benchmarks."""

import time
from typing import Any


def think(ws: Any, task: dict[str, Any]) -> float:
    """Make calls with time to think before each; return the seconds of all."""
    started = time.monotonic()
    for number in range(task["steps"]):
        time.sleep(task["think"])
        if number % 2:
            ws.call("codex", "shell", {"command": "true"})
        else:
            ws.call("file", "file.read", {"path": "a.txt"})
    return time.monotonic() - started
