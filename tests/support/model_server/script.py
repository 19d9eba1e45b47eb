"""Describes what a scripted model says: one turn after each result of a tool."""

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple


class Say(NamedTuple):
    """Holds a turn in which the model only writes text; this ends the task."""

    text: str
    end: Literal["stop", "length", "filter"] = "stop"
    """Why the text ends: it is whole, it is too long, or a filter stopped it."""


class Use(NamedTuple):
    """Holds a turn in which the model calls one tool. `tool` is the name without the prefix of the client."""

    tool: str
    arguments: dict[str, Any]


class Offered(NamedTuple):
    """Holds a tool that the client offers to the model. Some APIs group tools in a namespace."""

    name: str
    namespace: str = ""

    @property
    def whole(self) -> str:
        return f"{self.namespace}{self.name}"


class Asked(NamedTuple):
    """Holds one request to the model, the same for every API."""

    tools: Sequence[Offered]
    results: Sequence[str]
    """The results of the tools that the model has called so far."""
    body: dict[str, Any]
    headers: Mapping[str, str] = MappingProxyType({})


class Called(NamedTuple):
    """Holds the call of an offered tool, as the model returns it."""

    id: str
    tool: Offered
    arguments: dict[str, Any]

    @property
    def text(self) -> str:
        return json.dumps(self.arguments)


Reply = Say | Called


class Refuse(NamedTuple):
    """Holds an answer that is not of the API: an error of the server, or garbage."""

    status: int
    data: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


class Cut(NamedTuple):
    """Holds an answer of which only the first half is sent. Then the connection ends, or nothing more comes."""

    reply: Reply
    silent: bool = False
    clean: bool = False
    """End after a whole event, as if nothing was missing."""


Fault = Refuse | Cut
Model = Callable[[Asked], Reply | Fault]


def faulty(faults: Sequence[Fault], then: Model) -> Model:
    """Return a model whose first answers are faults; when they are used up, another model answers."""
    left = [*faults]
    return lambda asked: left.pop(0) if left else then(asked)


def scripted(turns: Sequence[Say | Use], mark: str = "handrail") -> Model:
    """Return a model that takes these turns in order.

    The number of results says which turn is next, so the model keeps no state: clients ask for titles and summaries in
    between, without tools, and get a plain text. `mark` is part of the name of the server whose tools are used.
    """

    def answer(asked: Asked) -> Reply:
        turn = turns[len(asked.results)] if len(asked.results) < len(turns) else Say("That is all.")
        if isinstance(turn, Say):
            return turn
        fitting = [each for each in asked.tools if each.whole.endswith(turn.tool) and mark in each.whole]
        if not fitting:
            return Say(f"The tool {turn.tool} is not offered.")
        best = min(fitting, key=lambda each: len(each.whole))
        return Called(f"call_{len(asked.results) + 1}", best, turn.arguments)

    return answer


def halves(text: str) -> tuple[str, str]:
    """Return a text in two pieces, as it streams."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def events(*values: dict[str, Any], named: bool = False) -> bytes:
    """Return server-sent events, one for each value; `named` events carry their type on a line of its own."""
    lines = (f"event: {each['type']}\n" if named else "" for each in values)
    return "".join(f"{name}data: {json.dumps(each)}\n\n" for name, each in zip(lines, values, strict=True)).encode()
