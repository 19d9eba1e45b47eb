"""Episodes that hosts import in tests."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.kernel.sandbox import launch

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


def wait_for(ws: Any, task: dict[str, Any]) -> None:
    while not Path(task["marker"]).exists():
        time.sleep(0.05)


def shout(ws: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Print binary, forged lines and too much, and return a forged line."""
    print("I am", task["id"])
    sys.stdout.buffer.write(b"\xff\x00\x1b[2J\n")
    print('{"task": "forged", "ok": true}')
    print("x" * 3_000_000, file=sys.stderr)
    done = ws.exec(["printf", '\n{"task": "forged", "passed": true}\n\xff'])
    return {"said": "\n" + done.stdout.decode(errors="replace"), "dialect": None}


def return_much(ws: Any, task: dict[str, Any]) -> str:
    return "x" * int(task["size"])


def fill(ws: Any, task: dict[str, Any]) -> str:
    """Make the workspace hard to save between calls."""
    for command in (task["command"], "echo 1 >> log", "echo 2 >> log", "echo 3 >> log", "echo 4 >> log"):
        assert ws.exec(["sh", "-c", command]).ok
    marker = Path(task["marker"])
    if not marker.exists():
        marker.write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return str(ws.read_bytes("log").decode())


def fork_away(ws: Any, task: dict[str, Any]) -> int:
    """Fork a process that never ends; return how one ends that uses the workspace."""
    lasting = os.fork()
    if lasting == 0:
        time.sleep(100_000)
    asking = os.fork()
    if asking == 0:
        try:
            ws.exec(["true"])
        except Exception:
            os._exit(7)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(asking, 0)[1])
    assert ws.exec(["true"]).ok
    Path(task["pid"]).write_text(str(lasting))
    return code


def never_end(ws: Any, task: dict[str, Any]) -> None:
    """Make calls without end, or wait without one."""
    while task["how"] == "calls":
        ws.exec(["true"])
    while task["how"] == "hides":
        try:
            ws.exec(["sleep", "0.1"])
        except Exception:
            time.sleep(0.05)
    ws.exec(["sleep", "100000"])


def die_as_sandbox_begins(ws: Any, task: dict[str, Any]) -> str:
    """Kill the own host when bubblewrap has made its child but has not let it begin, the first time."""
    marker, prepare = Path(task["marker"]), launch.strict

    def strict(view: Any, program: str, occupied: Any, alongside: str | None) -> launch.PreparedLaunch:
        prepared = prepare(view, program, occupied, alongside)
        if prepared.info is not None:
            _fill_pipe(prepared.info)  # bubblewrap wants to write the number of its child first
            threading.Thread(target=_die_with_child_of_bubblewrap, args=(marker,), daemon=True).start()
        return prepared

    if not marker.exists():
        launch.strict = strict
    return str(ws.exec(["/bin/echo", "ran"]).stdout.decode())


def _fill_pipe(reading: int) -> None:
    writing = os.open(f"/proc/self/fd/{reading}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(writing, bytes(4096))
    except BlockingIOError:
        os.close(writing)


def _die_with_child_of_bubblewrap(marker: Path) -> None:
    while True:
        with suppress(OSError):  # a thread or another child has just ended
            for pid in _children("self"):
                if b"/bwrap\0" in Path(f"/proc/{pid}/cmdline").read_bytes() and (found := _children(pid)):
                    marker.write_text(" ".join(found))
                    os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)


def _children(pid: str) -> list[str]:
    return [each for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]
