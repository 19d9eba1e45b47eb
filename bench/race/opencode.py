"""opencode, through the HTTP server that its own clients use."""

import glob
import http.client
import json
import os
import socket
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

from bench.race.contender import START_SECONDS, Answer, Spoken
from bench.race.install import Npm
from bench.race.spelling import Spelled
from bench.race.talk import Refused, TooSlow

JSON = {"Content-Type": "application/json"}
UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
KEY = {"Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}


class Opencode(Spoken):
    """What the server does without a model.

    It shows ten matches of a search and 200 names that resemble a pattern, and cannot be asked for more; so it takes
    no part where a hundred or all are wanted.
    """

    name = "opencode"
    kind = "HTTP"
    package = Npm("opencode-ai", "1.18.33")
    _session = ""
    _terminal: "Terminal | None" = None

    def argv(self) -> list[str]:
        """The shortest name, as there are builds for older processors and other C libraries beside the usual one."""
        built = glob.glob(f"{self.package.folder}/node_modules/opencode-*/bin/opencode")
        return [min(built, key=len, default="opencode"), "serve", "--pure", "--port", "0"]

    def env(self) -> dict[str, str]:
        return super().env() | {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def greet(self, deadline: float) -> None:
        assert self.lines
        while b" listening on " not in (line := self.lines.line(deadline)):
            pass
        address = urlsplit(line.split()[-1].decode())
        self.connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=START_SECONDS)
        self.ask(deadline, "GET /experimental/tool/ids", {})

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        self.connection.close()  # the server may have closed it while others took their turns
        self.connection.timeout = seconds
        self.connection.connect()
        if operation in ("shell", "command") and not self._session:
            self._session = json.loads(self.ask(0, "POST /session", {}))["id"]
        if operation == "terminal" and not self._terminal:
            made = json.loads(self.ask(0, "POST /pty", {"command": "cat"}))
            self._terminal = Terminal(self.connection, f"/pty/{made['id']}/connect")
        return super().do(operation, seconds, repeat, **arguments)

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        """The deadline is the connection's timeout."""
        if name == "type":
            assert self._terminal
            return self._terminal.type(deadline, arguments["text"])
        method, path = name.split()
        try:
            if method == "GET":
                self.connection.request(method, f"{path}?{urlencode(arguments)}")
            else:
                self.connection.request(method, path, json.dumps(arguments), JSON)
            response = self.connection.getresponse()
            text = response.read().decode()
        except TimeoutError:
            raise TooSlow from None
        if response.status != http.client.OK:
            raise Refused(text)
        return text

    def read(self, path: str) -> Spelled:
        return "GET /file/content", {"path": os.path.relpath(path, self.root)}

    def list(self, path: str) -> Spelled:
        return "GET /file", {"path": os.path.relpath(path, self.root)}

    def search(self, path: str, text: str) -> Spelled:
        return "GET /find", {"directory": path, "pattern": text}

    def shell(self, command: str) -> Spelled:
        return f"POST /session/{self._session}/shell", {"agent": "build", "command": command}

    command = shell

    def sessions(self, count: int) -> None:
        """Open so many sessions on this server."""
        for _ in range(count):
            self.ask(0, "POST /session", {})
            self.ask(0, *self.read(f"{self.root}/small.txt"))

    def terminal(self, text: str) -> Spelled:
        return "type", {"text": text}

    def close(self) -> None:
        if self._terminal:
            self._terminal.close()
            self._terminal = None
        super().close()


class Terminal:
    """A web socket to a terminal, for texts that are shorter than 126 bytes."""

    def __init__(self, server: http.client.HTTPConnection, path: str) -> None:
        self._socket = socket.create_connection((server.host, server.port), server.timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Host": server.host} | UPGRADE | KEY
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self._socket.sendall("\r\n".join(lines).encode())
        self._incoming = self._socket.makefile("rb")
        while self._incoming.readline().strip():
            pass

    def type(self, deadline: float, text: str) -> str:
        """What is typed at `cat`, echoed by the terminal and by the program."""
        self._socket.settimeout(max(deadline - time.perf_counter(), 0.001))
        typed, seen = text.encode(), ""
        self._socket.sendall(b"\x81" + bytes([0x80 | len(typed)]) + bytes(4) + typed)  # a mask of zeros changes nothing
        try:
            while seen.count(text.strip()) < 2:
                _, size = self._incoming.read(2)
                seen += self._incoming.read(size).decode()
        except TimeoutError:
            raise TooSlow from None
        return seen

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()
