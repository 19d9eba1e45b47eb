"""Who takes part: how each is started, and how it is asked.

Every contender answers the same neutral operations (`read`, `page`, `list`, …; see `columns.py`). One that is spoken to
says how it spells each of them; one that is a library is called by a small driver in an interpreter of its own.
"""

import os
import sys
import time
from dataclasses import dataclass
from typing import Any

from bench.race.install import NODE, Npm, PyPI, path
from bench.race.talk import Lines, Refused

START_SECONDS = 60.0
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclass(frozen=True)
class Answer:
    text: str
    ms: float


class Contender:
    name = ""
    kind = ""
    role = "peer"
    package: Npm | PyPI | None = None
    confines = False
    """Whether its file tools keep to a root that they are given."""

    def __init__(self, root: str, home: str) -> None:
        self.root, self.home = root, home
        self.lines: Lines | None = None
        self.peak = 0.0
        """The most memory that it used before it had to be started again, in MB."""

    @property
    def version(self) -> str:
        return self.package.version if self.package else ""

    def again(self) -> "Contender":
        """Another one of its kind, not yet started, with the tools that an agent's session begins with."""
        return type(self)(self.root, self.home)

    def argv(self) -> list[str]:
        raise NotImplementedError

    def env(self) -> dict[str, str]:
        """Return a home of its own, so that no file of the user is read or changed."""
        xdg = {f"XDG_{kind}_HOME": f"{self.home}/.{kind.lower()}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        return {"HOME": self.home, "NO_COLOR": "1", "PATH": path()} | xdg

    def start(self) -> None:
        os.makedirs(self.home, exist_ok=True)
        self.lines = Lines(self.argv(), cwd=self.root, env=self.env())
        self.greet(time.perf_counter() + START_SECONDS)

    def greet(self, deadline: float) -> None:
        """What is said until the first operation can be asked for."""
        raise NotImplementedError

    def can(self, operation: str) -> bool:
        raise NotImplementedError

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        """The answer, and the time of one of `repeat` calls."""
        raise NotImplementedError

    def together(self, operation: str, seconds: float, many: list[dict[str, Any]]) -> int:
        """All at the same time; of how many it said that they were done."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self.lines
        return self.lines.process.pid

    def close(self) -> None:
        if self.lines:
            self.lines.close()
            self.lines = None


class Spoken(Contender):
    """One method an operation: it says what to ask, as a method or tool and its arguments."""

    def can(self, operation: str) -> bool:
        return hasattr(self, operation)

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        spell, text = getattr(self, operation), ""
        began = time.perf_counter()
        deadline = began + seconds
        for _ in range(repeat):
            text = self.ask(deadline, *spell(**arguments))
        return Answer(text, (time.perf_counter() - began) / repeat * 1000)

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        raise NotImplementedError


class JsonRpc(Spoken):
    number = 0

    def request(self, deadline: float, method: str, params: dict[str, Any]) -> Any:
        number = self.send(method, params)
        while (answer := self.answer(deadline)).get("id") != number:
            pass
        if "error" in answer:
            raise Refused(str(answer["error"].get("message")))
        return answer["result"]

    def send(self, method: str, params: dict[str, Any]) -> int:
        assert self.lines
        self.number += 1
        self.lines.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, deadline: float) -> dict[str, Any]:
        assert self.lines
        while "method" in (answer := self.lines.next(deadline)):
            self.asked(answer)
        return answer

    def together(self, operation: str, seconds: float, many: list[dict[str, Any]]) -> int:
        deadline = time.perf_counter() + seconds
        waiting = {self.send(*self.wrapped(*getattr(self, operation)(**arguments))) for arguments in many}
        done = 0
        while waiting:
            answer = self.answer(deadline)
            if answer.get("id") in waiting:
                waiting.remove(answer["id"])
                done += "error" not in answer and not self.failed(answer["result"])
        return done

    def wrapped(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The request that asks for a tool, where it is not itself the tool."""
        return name, arguments

    def failed(self, result: dict[str, Any]) -> bool:
        raise NotImplementedError

    def asked(self, message: dict[str, Any]) -> None:
        """What the other side wants to know of us: only where our roots are."""
        assert self.lines
        if "id" in message:
            roots = [{"uri": f"file://{self.root}", "name": "root"}]
            self.lines.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": roots}})


class Mcp(JsonRpc):
    kind = "MCP"

    def greet(self, deadline: float) -> None:
        assert self.lines
        self.request(deadline, "initialize", HELLO)
        self.lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.request(deadline, "tools/list", {})

    def ask(self, deadline: float, name: str, arguments: dict[str, Any]) -> str:
        return texts(self.request(deadline, *self.wrapped(name, arguments)))

    def wrapped(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "tools/call", {"name": name, "arguments": arguments}

    def failed(self, result: dict[str, Any]) -> bool:
        return bool(result.get("isError"))


def texts(result: dict[str, Any]) -> str:
    text = "\n".join(part.get("text", "") for part in result["content"])
    if result.get("isError"):
        raise Refused(text)
    return text


class Driven(Contender):
    """A library, called in process by `bench/drivers/NAME`; the driver times the call itself."""

    kind = "in process"
    driver = ""
    _operations: tuple[str, ...] = ()

    def argv(self) -> list[str]:
        if self.driver.endswith(".mjs"):
            assert isinstance(self.package, Npm)
            return [NODE, f"{REPOSITORY}/bench/drivers/{self.driver}", self.root, self.package.folder]
        python = self.package.python if isinstance(self.package, PyPI) else sys.executable
        return [python, "-m", f"bench.drivers.{self.driver}", self.root]

    def env(self) -> dict[str, str]:
        return super().env() | {"PYTHONPATH": REPOSITORY}

    def greet(self, deadline: float) -> None:
        assert self.lines
        while not (ready := self.lines.next(deadline).get("ready")):
            pass
        self._operations = tuple(ready)

    def can(self, operation: str) -> bool:
        return operation in self._operations

    def do(self, operation: str, seconds: float, repeat: int = 1, **arguments: Any) -> Answer:
        assert self.lines
        self.lines.send({"op": operation, "args": arguments, "repeat": repeat})
        deadline = time.perf_counter() + seconds
        while "ms" not in (answer := self.lines.next(deadline)):
            if "error" in answer:
                raise Refused(answer["error"])
        return Answer(answer["text"], answer["ms"])

    def together(self, operation: str, seconds: float, many: list[dict[str, Any]]) -> int:
        assert self.lines
        self.lines.send({"op": operation, "together": many})
        deadline = time.perf_counter() + seconds
        while "done" not in (answer := self.lines.next(deadline)):
            pass
        return int(answer["done"])
