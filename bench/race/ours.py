"""Handrail on its surfaces, and the limits: the bare system, and the MCP SDK's empty server."""

import http.client
import json
import os
import subprocess
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from bench.race.contender import HELLO, START_SECONDS, Answer, Contender, Driven, Mcp, Spoken
from bench.race.spelling import Handrail, Spelled
from bench.race.talk import Refused
from handrail import __version__

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
SDK = """
import sys, anyio, mcp.types as types
from mcp.server.lowlevel import Server

async def tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="empty", input_schema={"type": "object"})])

async def call(ctx, params):
    return types.CallToolResult(content=[types.TextContent(text="")])

server = Server("bare", on_list_tools=tools, on_call_tool=call)

async def main():
    from mcp.server.stdio import stdio_server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

if sys.argv[1:] == ["http"]:
    import socket, uvicorn
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or Nagle stays on
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    print("serving on http://127.0.0.1:%d/mcp" % listening.getsockname()[1], file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([listening])
else:
    anyio.run(main)
"""


class Own(Contender):
    role = "handrail"

    @property
    def version(self) -> str:
        return __version__

    def env(self) -> dict[str, str]:
        return super().env() | {
            "HANDRAIL_STATE_DIR": f"{self.home}/state",
            "HANDRAIL_CONFIG_DIR": f"{self.home}/config",
        }


class InProcess(Own, Driven):
    name = "Handrail"
    driver = "ours"
    confines = True


class Run(Handrail, Own, Spoken):
    name = "Handrail, handrail run"
    kind = "JSON lines"
    _terminal = False

    def argv(self) -> list[str]:
        return [sys.executable, "-P", "-m", "handrail", "run", "--approve", "auto", "--root", self.root]

    def greet(self, deadline: float) -> None:
        self.ask(deadline, "file.read", {"path": "small.txt"})

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        assert self.lines
        if name == "write_stdin" and not self._terminal:
            self._terminal = True
            self.ask(deadline, *self.start_terminal())
        self.lines.send({"tool": name, "params": arguments})
        answer = self.lines.next(deadline)
        if not answer["success"]:
            raise Refused(str(answer["output"]))
        return str(answer["output"])

    def again(self) -> Contender:
        return RunSession(self.root, self.home)

    def list(self, path: str) -> Spelled:
        return "file.list", {"path": self._in(path)}  # two dialects have a list_dir, and a line does not say which


class RunSession(Run):
    """Its lines say which dialect they mean: several have a tool of this name."""

    def argv(self) -> list[str]:
        return [*super().argv(), "--dialect", "codex"]

    def read(self, path: str) -> Spelled:
        return "read_file", {"path": self._in(path)}

    def greet(self, deadline: float) -> None:
        """The first read is that of the session."""


class Stdio(Handrail, Own, Mcp):
    """A server speaks one dialect; for a tool of another one, a second server is started when it is first asked for."""

    name = "Handrail, MCP"
    dialect = "file"
    _terminal = False

    def __init__(self, root: str, home: str) -> None:
        super().__init__(root, home)
        self._others: dict[str, Stdio] = {}

    def argv(self) -> list[str]:
        flags = ["--dialect", self.dialect, "--approve", "auto", "--root", self.root]
        return [sys.executable, "-P", "-m", "handrail", "mcp", *flags]

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        if (dialect := self.dialect_of(name)) != self.dialect:
            return self._other(dialect).ask(deadline, name, arguments)
        if name == "write_stdin" and not self._terminal:
            self._terminal = True
            self.ask(deadline, *self.start_terminal())
        return super().ask(deadline, name, arguments)

    def _other(self, dialect: str) -> "Stdio":
        if dialect not in self._others:
            other = type(self)(self.root, self.home)
            other.dialect = dialect
            other.start()
            self._others[dialect] = other
        return self._others[dialect]

    def again(self) -> Contender:
        return Session(self.root, self.home)

    def close(self) -> None:
        for other in self._others.values():
            other.close()
        self._others.clear()
        self._terminal = False
        super().close()


class Session(Stdio):
    """A server with one dialect that reads files and runs commands."""

    dialect = "codex"

    def read(self, path: str) -> Spelled:
        return "read_file", {"path": self._in(path)}

    def dialect_of(self, tool: str) -> str:
        return self.dialect


class OverHttp(Mcp):
    """MCP over streamable HTTP, one connection kept open."""

    kind = "MCP over HTTP"
    connection: http.client.HTTPConnection
    headers: dict[str, str]

    def sessions(self, count: int) -> None:
        """Open so many sessions on this server, each with a connection of its own and one read, and leave them open."""
        mine, own_headers = self.connection, self.headers
        for _ in range(count):
            self.connection = http.client.HTTPConnection(mine.host, mine.port, timeout=START_SECONDS)
            self.headers = HEADERS | self.credentials()
            deadline = time.perf_counter() + START_SECONDS
            self.request(deadline, "initialize", HELLO)
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.request(deadline, "tools/list", {})
            self.ask(deadline, *getattr(self, "read")(f"{self.root}/small.txt"))  # noqa: B009  a subclass spells it
            self.opened.append(self.connection)
        self.connection, self.headers = mine, own_headers

    def start(self) -> None:
        self.opened: list[http.client.HTTPConnection] = []
        os.makedirs(self.home, exist_ok=True)
        argv, env = self.argv(), os.environ | self.env()
        self.server = subprocess.Popen(argv, cwd=self.root, env=env, stderr=subprocess.PIPE, text=True)
        assert self.server.stderr
        while "serving" not in (line := self.server.stderr.readline()):
            if not line:
                raise Refused("the server ended")
        address = urlsplit(line.split()[-1])
        self.path, self.headers = address.path, HEADERS | self.credentials()
        self.connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=START_SECONDS)
        self.request(time.perf_counter() + START_SECONDS, "initialize", HELLO)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request(time.perf_counter() + START_SECONDS, "tools/list", {})

    def credentials(self) -> dict[str, str]:
        """The headers by which the server knows us."""
        return {}

    def request(self, deadline: float, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        body = self._post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        if not body.startswith(b"{"):  # an event stream, whose last event is the answer
            body = body.rpartition(b"data: ")[2]
        answer = json.loads(body)
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer["result"]

    def _post(self, message: dict[str, Any]) -> bytes:
        self.connection.request("POST", self.path, json.dumps(message), self.headers)
        response = self.connection.getresponse()
        if session := response.getheader("mcp-session-id"):
            self.headers["mcp-session-id"] = session
        return response.read()

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        self.connection.close()  # the server may have closed it while others took their turns
        self.request(time.perf_counter() + seconds, "ping", {})
        return super().do(operation, seconds, repeat, **arguments)

    @property
    def pid(self) -> int:
        return self.server.pid

    def close(self) -> None:
        for connection in (self.connection, *self.opened):
            connection.close()
        self.server.terminate()
        self.server.communicate()


class Http(Handrail, Own, OverHttp):
    name = "Handrail, MCP over HTTP"
    can_do = ("read", "page", "write", "edit", "search", "first", "sessions")
    token = "measured with a token, as it is used"

    def argv(self) -> list[str]:
        token_file = f"{self.home}/token"
        with open(token_file, "w") as file:
            file.write(self.token)
        flags = ["--dialect", "file", "--approve", "auto", "--root", self.root, "--http", "127.0.0.1:0"]
        return [sys.executable, "-P", "-m", "handrail", "mcp", *flags, "--token-file", token_file]

    def credentials(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def can(self, operation: str) -> bool:
        return operation in self.can_do


class Bare(Driven):
    name = "the bare system"
    role = "limit"
    driver = "limits"


class Nothing(Driven):
    name = "an empty Python"
    role = "limit"
    driver = "nothing"


class Sdk(Mcp):
    name = "the SDK's empty server"
    role = "limit"

    def argv(self) -> list[str]:
        return [sys.executable, "-c", SDK]

    def read(self, path: str) -> Spelled:
        return "empty", {}

    def command(self, command: str) -> Spelled:
        return "empty", {}


class SdkHttp(OverHttp):
    name = "the SDK's empty server over HTTP"
    role = "limit"

    def argv(self) -> list[str]:
        return [sys.executable, "-c", SDK, "http"]

    def read(self, path: str) -> Spelled:
        return "empty", {}


OURS = (InProcess, Run, Stdio, Http)
LIMITS = (Bare, Nothing, Sdk, SdkHttp)
