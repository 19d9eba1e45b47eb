"""The page: what a call costs with it, how soon a question is in a window's stream, and what it costs idle."""

import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.measure import Row, row
from handrail import Verdict, Workspace

CALLS, ROUNDS, QUESTIONS = 200, 15, 15
MOST_MORE_MS, MOST_QUESTION_MS, MOST_IDLE = 0.1, 50.0, 0.01
IDLE_SECONDS = 5.0
SENT_SECONDS = 0.1
"""After this time all reports are sent."""
KEY = "X-Handrail-Page"
WAIT = 60


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as home:
        for name in ("STATE", "CONFIG"):
            os.environ[f"HANDRAIL_{name}_DIR"] = f"{home}/{name.lower()}"
        root = Path(home) / "root"
        root.mkdir()
        (root / "a.txt").write_text("a line of text\n" * 50)
        with _page() as page, _window(page) as events, Workspace(str(root), approve="auto") as workspace:
            more = _more_ms(workspace)
            question = _question_ms(str(root), events)
            idle = _idle(page)
    return [
        row("a call with the page connected, more than without / 0.1 ms", more, MOST_MORE_MS, 1.0),
        row("a question until it is in a window's stream / 50 ms", question, MOST_QUESTION_MS, 1.0),
        row("CPU of server and process, idle, of 1 % of a core", idle, MOST_IDLE, 1.0),
    ]


def _calls_ms(workspace: Workspace) -> float:
    """Return what a call costs this process, the thread that reports it included: CPU, which load does not change."""
    tools, started = workspace.tools("file"), time.process_time()
    for _ in range(CALLS):
        tools.call("file.read", {"path": "a.txt"})
    time.sleep(SENT_SECONDS)
    return (time.process_time() - started) / CALLS * 1000


def _more_ms(workspace: Workspace) -> float:
    """Calls with and without the page take turns: without its socket a new session does not connect."""
    socket = Path(os.environ["HANDRAIL_STATE_DIR"]) / "page" / "socket"
    hidden = socket.with_name("hidden")
    root, pairs = workspace.root, list[tuple[float, float]]()
    for _ in range(ROUNDS + 1):
        times = []
        for connected in (True, False):
            if not connected:
                socket.rename(hidden)
            with Workspace(root, approve="auto") as one:
                _calls_ms(one)
                times.append(_calls_ms(one))
            if not connected:
                hidden.rename(socket)
        pairs.append((times[0], times[1]))
    return max(0.0, statistics.median(with_page - without for with_page, without in pairs[1:]))


def _question_ms(root: str, events: "queue.SimpleQueue[tuple[float, Any]]") -> float:
    """From the call until the event has arrived; the usual place answers after that."""
    times = []
    for n in range(QUESTIONS):
        shown = threading.Event()
        with Workspace(root, approver=lambda _, shown=shown: Verdict(shown.wait(WAIT), "bench")) as workspace:
            workspace.call("file", "file.list", {"path": "."})
            started = time.perf_counter()
            work = threading.Thread(target=workspace.call, args=("file", "file.write", {"path": f"{n}", "content": ""}))
            work.start()
            while True:
                at, event = events.get(timeout=WAIT)
                if event.get("type") == "question" and at > started:
                    break
            times.append((at - started) * 1000)
            shown.set()
            work.join(WAIT)
    return statistics.median(times)


def _idle(page: "subprocess.Popen[str]") -> float:
    """Return the part of a core that the server and this connected process use while nothing happens."""
    time.sleep(1)
    before = _cpu(page.pid) + _cpu(os.getpid())
    time.sleep(IDLE_SECONDS)
    return (_cpu(page.pid) + _cpu(os.getpid()) - before) / IDLE_SECONDS


def _cpu(pid: int) -> float:
    """Return the seconds of CPU of a process, in nanoseconds' resolution."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@contextmanager
def _page() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-P", "-m", "handrail", "page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as page:
        try:
            yield page
        finally:
            page.terminate()


@contextmanager
def _window(page: "subprocess.Popen[str]") -> Iterator["queue.SimpleQueue[tuple[float, Any]]"]:
    """Follow the events as a browser does, and note when each arrived."""
    assert page.stdout
    origin, _, token = page.stdout.readline().strip().partition("/#")
    headers = {KEY: "new", "Origin": origin, "Content-Type": "application/json"}
    link = HTTPConnection(origin.removeprefix("http://"), timeout=WAIT)
    link.request("POST", "/api/enter", json.dumps({"token": token}), headers)
    entered = link.getresponse()
    headers = {KEY: json.load(entered)["key"], "Cookie": str(entered.headers["set-cookie"]).partition(";")[0]}
    link.request("GET", "/api/events", headers=headers)
    stream, events = link.getresponse(), queue.SimpleQueue[tuple[float, Any]]()

    def follow() -> None:
        for line in stream:
            if line.startswith(b"data: "):
                events.put((time.perf_counter(), json.loads(line[6:])))

    threading.Thread(target=follow, daemon=True).start()
    yield events
