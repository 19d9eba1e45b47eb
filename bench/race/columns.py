"""What is measured: one column an operation, the same question to every contender, and the answer looked at."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.measure import settle
from bench.race.contender import Answer, Contender
from bench.race.place import COMMON, DEEP, FOUND, NOTHING, RARE, Place
from bench.race.talk import memory

MANY = 100
SECONDS = 20.0
"""The longest that one answer is waited for."""


@dataclass(frozen=True)
class Turn:
    """One measurement: who, where, and for the how-manieth time."""

    contender: Contender
    place: Place
    number: int

    @property
    def forth(self) -> bool:
        """Edits go there and back, so that there is always something to change."""
        return self.number % 2 == 0

    def own(self, name: str) -> str:
        return f"{self.place.own(self.contender.name)}/{name}"

    def ask(self, operation: str, repeat: int = 1, **arguments: Any) -> Answer:
        return self.contender.do(operation, SECONDS, repeat, **arguments)


@dataclass(frozen=True)
class Column:
    key: str
    title: str
    limit: str
    """The limit in words."""
    act: Callable[[Turn], Answer]
    needs: str = ""
    """The operation that a contender must have."""
    expect: tuple[str, ...] = ()
    """What every answer must hold, but for the limit's."""
    limits: str = "the bare system"
    """The contender that is the limit."""
    kinds: tuple[str, ...] = ()
    """Only contenders of these kinds take part; of all, if empty."""
    rounds: int = 15
    unit: str = "ms"
    before: Callable[[Place], None] | None = None
    target: float = math.inf
    """How many times the limit Handrail may take."""
    judged: str = "Handrail"
    """On which of its surfaces."""


SERVERS, LIBRARIES = ("MCP", "MCP over HTTP", "JSON lines", "app-server", "HTTP"), ("in process",)
SDK, SDK_HTTP, EMPTY = "the SDK's empty server", "the SDK's empty server over HTTP", "an empty Python"


def _start(turn: Turn) -> Answer:
    """From nothing to the list of its tools, or to the first call that could be made."""
    fresh = type(turn.contender)(turn.contender.root, turn.contender.home)
    began = time.perf_counter()
    try:
        fresh.start()
        return Answer("", (time.perf_counter() - began) * 1000)
    finally:
        fresh.close()


def _session(turn: Turn) -> Answer:
    """What a user waits for at the start of an agent: the tools, a first read and a first command; files are cached."""
    fresh = turn.contender.again()
    began = time.perf_counter()
    try:
        fresh.start()
        fresh.do("read", SECONDS, path=turn.place.small)
        fresh.do("command", SECONDS, command="true")
        return Answer("", (time.perf_counter() - began) * 1000)
    finally:
        fresh.close()


def _opening(turn: Turn) -> Answer:
    return Answer("", _sessions(turn)[0])


def _each(turn: Turn) -> Answer:
    return Answer("", _sessions(turn)[1])


def _sessions(turn: Turn) -> tuple[float, float]:
    """Milliseconds and MB of each of many sessions on one server; the first is not counted, which loads code."""
    fresh: Any = turn.contender.again()
    fresh.start()
    try:
        fresh.sessions(1)
        before, began = memory(fresh.pid, "VmRSS"), time.perf_counter()
        fresh.sessions(MANY)
        spent = time.perf_counter() - began
        return spent / MANY * 1000, (memory(fresh.pid, "VmRSS") - before) / MANY
    finally:
        fresh.close()


def _edit(turn: Turn) -> Answer:
    old, new = ("line 05000 x", "LINE 05000 x") if turn.forth else ("LINE 05000 x", "line 05000 x")
    answer = turn.ask("edit", path=turn.own("edit.txt"), old=old, new=new)
    with open(turn.own("edit.txt"), encoding="utf-8") as file:
        assert new in file.read(), "reported success, but the file is not changed"
    return answer


def _patch(turn: Turn) -> Answer:
    arguments = turn.place.patch(turn.contender.name, forth=turn.forth)
    answer = turn.ask("patch", text=arguments["text"], unified=arguments["unified"])
    with open(turn.own("patch9.txt"), encoding="utf-8") as file:
        assert ("changed 180" in file.read()) == turn.forth, "reported success, but the file is not changed"
    return answer


def _write(turn: Turn) -> Answer:
    content = f"{turn.number}\n" + "a line of text to be written\n" * 170
    return turn.ask("write", path=turn.own("written.txt"), content=content)


def _read(turn: Turn) -> Answer:
    return turn.ask("read", 10, path=turn.place.small)


def _page(turn: Turn) -> Answer:
    return turn.ask("page", path=turn.place.huge, line=DEEP, count=50)


def _terminal(turn: Turn) -> Answer:
    return turn.ask("terminal", text=f"hello {turn.number}\n")


def _list(turn: Turn) -> Answer:
    return turn.ask("list", path=turn.place.many)


def _glob(turn: Turn) -> Answer:
    return turn.ask("glob", path=turn.place.tree, pattern="**/*.py")


def _first(turn: Turn) -> Answer:
    return turn.ask("first", path=turn.place.tree, text=COMMON, limit=100)


def _total(turn: Turn) -> Answer:
    return turn.ask("count", path=turn.place.tree, text=COMMON)


def _true(operation: str) -> Callable[[Turn], Answer]:
    return lambda turn: turn.ask(operation, command="true")


def _search(text: str) -> Callable[[Turn], Answer]:
    return lambda turn: turn.ask("search", path=turn.place.tree, text=text)


def _nothing(turn: Turn) -> Answer:
    """Who cannot search finds nothing fastest, so the turn that is not counted looks for what is there."""
    if turn.number == 0:
        assert FOUND in _search(RARE)(turn).text, f"{FOUND} is not in the answer"
    return _search(NOTHING)(turn)


def _idle(turn: Turn) -> Answer:
    return Answer("", memory(turn.contender.pid, "VmRSS"))


def _peak(turn: Turn) -> Answer:
    return Answer("", max(turn.contender.peak, memory(turn.contender.pid, "VmHWM")))


_DEEP = (f"{DEEP + 9:08}",)
_ALL = ("file00000", "file09999")
_MCP = "Handrail, MCP"

COLUMNS = [
    Column("idle", "idle memory", SDK, _idle, limits=SDK, unit="MB", rounds=1, target=1.2, judged=_MCP),
    Column(
        "start",
        "start of a server until its tools are listed",
        SDK,
        _start,
        limits=SDK,
        kinds=SERVERS,
        rounds=7,
        target=1.1,
        judged=_MCP,
    ),
    Column("import", "start of a library until it is ready", EMPTY, _start, limits=EMPTY, kinds=LIBRARIES, rounds=7),
    Column(
        "session",
        "start of an agent's session: tools, a first read, a first command",
        "the SDK's empty server and two calls",
        _session,
        "command",
        limits=SDK,
        kinds=SERVERS,
        rounds=7,
        target=1,
        judged=_MCP,
    ),
    Column(
        "opening",
        f"open one of {MANY} sessions on one server, with a first read",
        "the SDK's empty server and tool",
        _opening,
        "sessions",
        limits=SDK_HTTP,
        kinds=("MCP over HTTP", "HTTP"),
        rounds=3,
        judged="Handrail, MCP over HTTP",
    ),
    Column(
        "each",
        f"memory of each of {MANY} sessions on one server",
        "the SDK's empty server",
        _each,
        "sessions",
        limits=SDK_HTTP,
        kinds=("MCP over HTTP", "HTTP"),
        rounds=3,
        unit="MB",
        judged="Handrail, MCP over HTTP",
    ),
    Column("read", "read a file of 5 KB", "open, read, close", _read, "read", ("line 0150",), rounds=40, target=6),
    Column(
        "mcp",
        "read 5 KB over MCP",
        "the SDK's empty tool",
        _read,
        "read",
        limits=SDK,
        kinds=("MCP",),
        rounds=40,
        target=1.3,
        judged=_MCP,
    ),
    Column(
        "http",
        "read 5 KB over MCP and HTTP",
        "the SDK's empty tool",
        _read,
        "read",
        limits=SDK_HTTP,
        kinds=("MCP over HTTP",),
        rounds=40,
        target=1.3,
        judged="Handrail, MCP over HTTP",
    ),
    Column(
        "page",
        "page deep in 100 MB, a file not seen before",
        "wc -l",
        _page,
        "page",
        _DEEP,
        before=lambda place: os.utime(place.huge),
        rounds=9,
        target=1.5,
    ),
    Column(
        "again", "the same page again", "wc -l", _page, "page", _DEEP, before=lambda place: settle(place.huge), rounds=9
    ),
    Column("list", "list 10 000 files", "scandir, sort", _list, "list", _ALL, target=1.5),
    Column("write", "write 5 KB", "write, fsync, rename", _write, "write", rounds=25, target=1.3),
    Column("edit", "edit one line of 1 MB", "read, write, fsync, rename", _edit, "edit", rounds=25),
    Column("patch", "patch of 30 hunks in ten files", "git apply", _patch, "patch", target=2),
    Column("glob", "glob **/*.py", "rg --files", _glob, "glob", (".py",), rounds=9, target=1.2),
    Column("rare", "search a rare literal", "rg", _search(RARE), "search", (FOUND,), rounds=9, target=1.15),
    Column("nothing", "search what is nowhere", "rg", _nothing, "search", rounds=9, target=1.15),
    Column("first", "search a common word, first 100", "rg until 100 lines are there", _first, "first", (COMMON,)),
    Column("total", "search a common word, exact total", "rg --count", _total, "count", rounds=9, target=1.15),
    Column("shell", "shell: true", "a bare spawn", _true("shell"), "shell", rounds=25),
    Column("sandboxed", "shell: true, in a sandbox", "bare bubblewrap", _true("sandboxed"), "sandboxed", rounds=25),
    Column("terminal", "terminal round trip", "a bare PTY", _terminal, "terminal", ("hello",)),
    Column("peak", "peak memory of all of it", SDK, _peak, limits=SDK, unit="MB", rounds=1),
]
