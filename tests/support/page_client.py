"""Starts the page's server and talks to it as its own page does."""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

import httpx2

from handrail import Workspace
from handrail.tools.tool import ToolResult

PATIENCE = 60
KEY = "X-Handrail-Page"
Json = dict[str, Any]


class RunningPage:
    """Holds a server of the page, which the test started."""

    def __init__(self, state: str = "") -> None:
        self.environment = os.environ | ({"HANDRAIL_STATE_DIR": state} if state else {})
        self._command = [sys.executable, "-P", "-m", "handrail", "page"]
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        self.origin, _, self.token = self.address.partition("/#")
        self.port = int(self.origin.rpartition(":")[2])

    def another_address(self) -> str:
        """Return what a second `handrail page` prints."""
        again = subprocess.run(
            self._command, capture_output=True, text=True, check=True, timeout=PATIENCE, env=self.environment
        )
        return again.stdout.strip()

    def end(self, *, kill: bool = False) -> None:
        """End the server, as a user or as the system does."""
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


@contextmanager
def running_page(state: str = "") -> Iterator[RunningPage]:
    """Start the page's server of a state directory; the current one if none is named."""
    page = RunningPage(state)
    try:
        yield page
    finally:
        page.end()


class PageClient:
    """Talks to the server as the page does, after the exchange of a token."""

    def __init__(self, page: RunningPage, token: str = "") -> None:
        self.page = page
        self.http = httpx2.Client(base_url=page.origin, timeout=PATIENCE)
        body = {"token": token or page.token}
        entered = self.http.post("/api/enter", json=body, headers={KEY: "new", "Origin": page.origin})
        entered.raise_for_status()
        self.key: str = entered.json()["key"]
        self.cookie = entered.headers["set-cookie"].partition(";")[0]
        self.http.cookies.clear()  # each request names its own

    @property
    def headers(self) -> dict[str, str]:
        return {KEY: self.key, "Origin": self.page.origin, "Cookie": self.cookie}

    def post(self, path: str, body: Json, headers: dict[str, str] | None = None) -> httpx2.Response:
        """Send a request as the page does."""
        return self.http.post(path, json=body, headers=self.headers | (headers or {}))

    def follow(self, last: str = "") -> "Followed":
        """Follow the events."""
        return Followed(self, last)

    def close(self) -> None:
        self.http.close()


class Followed:
    """Reads the events of the page in a thread of its own."""

    def __init__(self, client: PageClient, last: str = "") -> None:
        self.last = last
        self._events = queue.SimpleQueue[tuple[str, Json]]()
        self._link = HTTPConnection("127.0.0.1", client.page.port, timeout=PATIENCE)
        headers = {KEY: client.key, "Cookie": client.cookie} | ({"Last-Event-ID": last} if last else {})
        self._link.request("GET", "/api/events", headers=headers)
        self._socket = self._link.sock
        self._stream = self._link.getresponse()
        assert self._stream.status == 200
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        event: dict[str, str] = {}
        with suppress(OSError, HTTPException):  # the server or the test has ended
            for raw in self._stream:
                line = raw.decode().rstrip("\n")
                name, _, value = line.partition(": ")
                if not line and "data" in event:
                    self.last = event["id"]
                    self._events.put((event["event"], json.loads(event["data"])))
                    event = {}
                elif name:
                    event[name] = value

    def next(self, wanted: Callable[[str, Json], bool] = lambda *_: True) -> Json:
        """Return the next event that is wanted; drop those before it."""
        while True:
            name, data = self._events.get(timeout=PATIENCE)
            if wanted(name, data):
                return data

    def of(self, kind: str) -> Json:
        """Return the next event of one type."""
        return self.next(lambda name, data: name == "event" and data["type"] == kind)

    def question(self) -> Json:
        """Return the next question, when it can be answered."""
        card: Json = self.of("question")["question"]
        threading.Event().wait(0.45)  # the server takes no answer before that
        return card

    def close(self) -> None:
        """Leave, as a closed window does."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reading.join(PATIENCE)
        self._stream.close()
        self._link.close()


class Working:
    """Runs one call in a thread, as an agent does."""

    def __init__(self, workspace: Workspace, dialect: str, tool: str, params: Json) -> None:
        self._done = queue.SimpleQueue[ToolResult]()
        work = threading.Thread(target=lambda: self._done.put(workspace.call(dialect, tool, params)), daemon=True)
        work.start()

    def result(self) -> ToolResult:
        """Wait for the result."""
        return self._done.get(timeout=PATIENCE)


def writing(workspace: Workspace, path: str = "a.txt", content: str = "new\n") -> Working:
    """Write a file, which asks."""
    return Working(workspace, "file", "file.write", {"path": path, "content": content})
