"""Compares the two fronts: to the same messages, the front of the pipe and the SDK answer the same sorted JSON."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import methods
from mcp.types.jsonrpc import jsonrpc_message_adapter
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from support.mcp_client import in_memory, offer
from support.pipe_front import raw_answers

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.surfaces.mcp import mcp_protocol as facts
from handrail.surfaces.mcp.request_shapes import HANDSHAKE_REQUESTS, STATELESS_REQUESTS, fits

Json = dict[str, Any]
CLIENT = {"name": "raw", "version": "1", "title": "Raw", "icons": [{"src": "x:", "sizes": ["1x1"], "theme": "dark"}]}
ABLE: Json = {
    "elicitation": {"form": {}, "url": {}},
    "experimental": {"x": {"y": 1}},
    "extensions": {"a/b": {}},
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "tasks": {"list": {}, "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}}},
}
ENVELOPE: Json = {
    facts.VERSION_KEY: "2026-07-28",
    facts.CAPABILITIES_KEY: {name: value for name, value in ABLE.items() if name != "tasks"},
    facts.CLIENT_KEY: CLIENT,
    facts.LOG_LEVEL_KEY: "info",
    "progressToken": "t",
}
AGAIN = {
    "requestState": "no.seal",
    "inputResponses": {
        "approval": {"action": "accept", "content": {"decision": "once", "n": 1, "l": ["x"], "z": None}}
    },
}
PARAMETERS: dict[str, Json] = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": ABLE, "clientInfo": CLIENT},
    "ping": {},
    "server/discover": {},
    "tools/list": {"cursor": "x"},
    "tools/call": {"name": "read", "arguments": {"path": "a"}, "task": {"ttl": 5}, **AGAIN},
    "resources/list": {"cursor": "x"},
    "resources/templates/list": {"cursor": "x"},
    "resources/read": {"uri": "handrail://history", **AGAIN},
    "resources/subscribe": {"uri": "handrail://history"},
    "resources/unsubscribe": {"uri": "handrail://history"},
    "prompts/list": {"cursor": "x"},
    "prompts/get": {"name": "undo", "arguments": {"entry": "1"}, **AGAIN},
    "logging/setLevel": {"level": "info"},
    "completion/complete": {
        "argument": {"name": "a", "value": "b"},
        "context": {"arguments": {"c": "d"}},
        "ref": {"type": "ref/prompt", "name": "undo"},
    },
    "subscriptions/listen": {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x:"]}},
}
ODD: list[Any] = [
    None,
    True,
    0,
    1,
    7,
    2.0,
    2.5,
    "",
    "x",
    "5",
    "true",
    [],
    ["x"],
    [1],
    {},
    {"x": 1},
    {"x": "y"},
    {"x": {}},
]


def _sdk_answers(server: Any, messages: list[Json]) -> list[Any]:
    """Return what the SDK sends for some messages; each is answered before the next is sent."""

    async def main() -> list[Any]:
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, out = anyio.create_memory_object_stream[SessionMessage](100)
        sent = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
            for message in messages:
                await into.send(SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False)))
                if "id" in message and "method" in message:
                    answer = await out.receive()
                    sent.append(json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True)))
            into.close()
        out.close()
        return sent

    return anyio.run(main)


def _sorted(messages: list[Any]) -> list[str]:
    """Return messages as sorted JSON, without the time that a call took."""
    for message in messages:
        message.get("result", {}).get("_meta", {}).get("handrail/result", {}).pop("execution_time_ms", None)
    return [json.dumps(each, sort_keys=True) for each in messages]


def _requests(dialect: Any) -> Iterator[tuple[str, Json]]:
    """Yield requests with good and bad parameters: every method, and a call of every tool."""
    for method, good in PARAMETERS.items():
        if method not in ("initialize", "tools/call", "resources/read", "prompts/get"):
            yield method, good
            yield method, {}
            yield method, dict.fromkeys(good, 7)
    for tool in dialect.tools:
        yield "tools/call", {"name": tool, "arguments": {}}
        yield (
            "tools/call",
            {"name": tool, "arguments": {"path": "a.txt", "absolute_path": "a.txt", "filePath": "a.txt"}},
        )
    yield "tools/call", {"name": "no such tool"}
    yield "tools/call", {"arguments": {}}
    yield "tools/call", {"name": "x", "arguments": [], "_meta": {}}
    yield "tools/call", {"name": "x", "_meta": {"handrail/mark": "two\nlines"}}
    for uri in ("handrail://history", "handrail://history/99", "handrail://jobs", "file:///etc/passwd", 7):
        yield "resources/read", {"uri": uri}
    for name in ("undo", "other", None):
        yield "prompts/get", {"name": name, "arguments": {"entry": "1"}}
    yield "prompts/get", {"name": "undo", "arguments": {"entry": 1}}
    yield "no/such/method", {}
    yield "notifications/initialized", {}


def _handshake(version: str) -> list[Json]:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": "early", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "ping", "method": "ping"},
        {"jsonrpc": "2.0", "id": "bad", "method": "initialize", "params": {**hello, "capabilities": []}},
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "other era", "method": "tools/list", "params": {"_meta": ENVELOPE}},
    ]


def _stateless() -> list[Json]:
    metas: list[Any] = [None, 7, {}, {facts.VERSION_KEY: "2026-07-28"}]
    metas += [ENVELOPE | {facts.VERSION_KEY: version} for version in (None, 7, "2025-11-25", "2099-01-01")]
    metas += [ENVELOPE | {facts.CAPABILITIES_KEY: able} for able in (None, 7, {"elicitation": 7}, {})]
    wrong = [
        {"jsonrpc": "2.0", "id": f"m{n}", "method": "tools/list", "params": {"_meta": m}} for n, m in enumerate(metas)
    ]
    return [
        {"jsonrpc": "2.0", "id": "hello", "method": "server/discover", "params": {"_meta": ENVELOPE}},
        {"jsonrpc": "2.0", "id": "none", "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "old", "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "id": "older", "method": "initialize"},
        *wrong,
    ]


@pytest.mark.parametrize("version", [*facts.HANDSHAKE_VERSIONS, *facts.STATELESS_VERSIONS, "2099-01-01"])
@pytest.mark.parametrize("dialect", NAMES)
def test_both_fronts_answer_every_request_alike(root: Path, dialect: str, version: str) -> None:
    (root / "a.txt").write_text("one\n")
    stateless = version in facts.STATELESS_VERSIONS
    messages = _stateless() if stateless else _handshake(version)
    with Workspace(str(root), approve="never", sandbox="off") as workspace:
        offered = offer(workspace, dialect=dialect)
        for number, (method, params) in enumerate(_requests(offered.dialect)):
            given = {**params, "_meta": ENVELOPE | params.get("_meta", {})} if stateless else params
            messages.append({"jsonrpc": "2.0", "id": number, "method": method, "params": given})
        ours, theirs = raw_answers(offered, messages), _sdk_answers(in_memory(workspace, dialect=dialect), messages)
    assert len(ours) == len([each for each in messages if "id" in each])
    assert _sorted(ours) == _sorted(theirs)


def test_revisions_are_those_of_the_sdk() -> None:
    assert facts.HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert facts.STATELESS_VERSIONS == MODERN_PROTOCOL_VERSIONS


def _variants(value: Any) -> Iterator[Any]:
    """Yield a JSON value with each of its parts replaced by each odd value, and with each field left out."""
    yield from copy.deepcopy(ODD)
    for name in value if isinstance(value, dict) else ():
        yield {key: each for key, each in value.items() if key != name}
        for variant in _variants(value[name]):
            yield {**value, name: variant}
    for index in range(len(value) if isinstance(value, list) else 0):
        for variant in _variants(value[index]):
            yield [*value[:index], variant, *value[index + 1 :]]


def _sdk_accepts(method: str, version: str, params: Any) -> bool:
    try:
        methods.parse_client_request(method, version, params)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("version", "shapes"), [("2025-11-25", HANDSHAKE_REQUESTS), ("2026-07-28", STATELESS_REQUESTS)], ids=["old", "new"]
)
def test_shapes_accept_what_the_sdk_accepts(version: str, shapes: dict[str, Json]) -> None:
    assert shapes.keys() == {method for method, known in methods.CLIENT_REQUESTS if known == version}
    for method, shape in shapes.items():
        good = {**PARAMETERS[method], "_meta": ENVELOPE if version == "2026-07-28" else {"progressToken": 1}}
        given = [good, *(each for each in _variants(good) if isinstance(each, dict))]
        wrong = [each for each in given if fits(each, shape) is not _sdk_accepts(method, version, each)]
        assert wrong == [], method
