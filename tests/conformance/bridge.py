"""Lets the conformance suite, which speaks HTTP only, test the front on a pipe: each session is a server on a pipe.

The bridge adds nothing to a message but a number of its own in place of the id, because clients that share a server
may choose the same ids. Clients of the stateless revision share one server.
"""

import itertools
import json
import signal
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

from handrail.surfaces.mcp.mcp_protocol import METHOD_NOT_FOUND, STATELESS_VERSIONS, VERSION_KEY

Json = dict[str, Any]
STATELESS = "stateless"
FIRST = {"method": "server/discover", "params": {"_meta": {VERSION_KEY: STATELESS_VERSIONS[-1]}}}
"""The first message decides the era of a pipe; the suite also sends messages that belong to none."""


class Piped:
    """Holds one server on a pipe, and gives each answer to the request that waits for it."""

    def __init__(self, root: str) -> None:
        command = [sys.executable, "-m", "conformance.fixture", root, "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._waiting: dict[int, tuple[Any, Any, SimpleQueue[Json | None]]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Json) -> SimpleQueue[Json | None] | None:
        """Pass a message on. Returns a queue of what the server sends until it has answered, with None as its end."""
        waiting = None
        if "method" in message and "id" in message:
            token = ((message.get("params") or {}).get("_meta") or {}).get("progressToken")
            number, waiting = next(self._numbers), SimpleQueue[Json | None]()
            with self._lock:
                self._waiting[number] = message["id"], token, waiting
            message = {**message, "id": number}
        elif message.get("method") == "notifications/cancelled":
            message = {**message, "params": {**message["params"], "requestId": self._number(message["params"])}}
        with self._lock:
            assert self._process.stdin
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        return waiting

    def _number(self, params: Json) -> int:
        with self._lock:
            return next((n for n, (known, *_) in self._waiting.items() if known == params.get("requestId")), 0)

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            with self._lock:
                if "method" in message:
                    for waiting in self._streams(message):
                        waiting.put(message)
                elif message.get("id") in self._waiting:
                    known, _, waiting = self._waiting.pop(message["id"])
                    waiting.put({**message, "id": known})
                    waiting.put(None)

    def _streams(self, message: Json) -> list[SimpleQueue[Json | None]]:
        """Return the stream for what the server says on its own: that of its progress token, else the last one."""
        token = (message.get("params") or {}).get("progressToken")
        fitting = [waiting for _, known, waiting in self._waiting.values() if token is None or known == token]
        return fitting[-1:]

    def end(self) -> None:
        self._process.terminate()

    def wait(self) -> None:
        self._process.wait(30)


class Bridge(BaseHTTPRequestHandler):
    root = ""
    sessions: dict[str, Piped] = {}  # noqa: RUF012  one bridge runs in a process
    spare: SimpleQueue[Piped] = SimpleQueue()
    """Servers that are started already: the suite waits a short time only."""
    making = threading.Lock()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = self.headers.get("mcp-session-id")
        if name is None:
            begins = message.get("method") == "initialize" and VERSION_KEY not in message["params"].get("_meta", {})
            name = uuid.uuid4().hex if begins else STATELESS
        with self.making:
            if name not in self.sessions and (name == STATELESS or message.get("method") == "initialize"):
                self.sessions[name] = self.spare.get()
                self.spare.put(Piped(self.root))
                if name == STATELESS:
                    self.sessions[name].send({"jsonrpc": "2.0", "id": "first", **FIRST})
        if name not in self.sessions:
            self._plain(404)
        elif (waiting := self.sessions[name].send(message)) is None:
            self._plain(202)
        else:
            self._stream(name, waiting)

    def do_DELETE(self) -> None:
        found = self.sessions.pop(self.headers.get("mcp-session-id", ""), None)
        if found is not None:
            found.end()
            found.wait()
        self._plain(204 if found else 404)

    def do_GET(self) -> None:
        self._plain(405)

    def _stream(self, name: str, waiting: SimpleQueue[Json | None]) -> None:
        message = waiting.get()
        failed = message.get("error", {}).get("code") if message and name == STATELESS else None
        self.send_response({None: 200, METHOD_NOT_FOUND: 404}.get(failed, 400))
        self.send_header("content-type", "application/json" if failed else "text/event-stream")
        if name != STATELESS:
            self.send_header("mcp-session-id", name)
        self.end_headers()
        if failed:
            self.wfile.write(json.dumps(message).encode())
            return
        while message is not None:
            self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
            message = waiting.get()

    def _plain(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


if __name__ == "__main__":
    Bridge.root = sys.argv[1]
    for _ in range(2):
        Bridge.spare.put(Piped(Bridge.root))
    with ThreadingHTTPServer(("127.0.0.1", 0), Bridge) as served:
        print(f"serving on http://127.0.0.1:{served.server_address[1]}/mcp", file=sys.stderr, flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            served.serve_forever()
        finally:
            while not Bridge.spare.empty():
                Bridge.sessions[f"spare {Bridge.spare.qsize()}"] = Bridge.spare.get()
            for each in Bridge.sessions.values():
                each.end()
            for each in Bridge.sessions.values():
                each.wait()
