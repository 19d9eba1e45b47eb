"""Adds the parts of the protocol that Handrail does not offer but the suite tests on its transport."""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import mcp.types as t
from conformance.rounds import ROUNDS, need_sampling, open_question
from mcp.shared.exceptions import MCPError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

Json = dict[str, Any]
DATA = b64encode(b"a few bytes").decode()
TEXT, IMAGE = {"type": "text", "text": "some text"}, {"type": "image", "mimeType": "image/png", "data": DATA}
RESOURCE = {"type": "resource", "resource": {"uri": "test://mixed", "mimeType": "text/plain", "text": "some text"}}
COMPLETE = {"resultType": "complete"}
LISTED = {**COMPLETE, "ttlMs": 0, "cacheScope": "private"}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
PLAIN = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": PLAIN},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": PLAIN}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def _log(ctx: Any) -> None:
    for text in ("started", "processing", "completed"):
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)


async def _sample(ctx: Any) -> None:
    message = t.SamplingMessage(role="user", content=t.TextContent(text="hello"))
    await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)


def _form(properties: Json) -> Callable[[Any], Awaitable[Any]]:
    schema = {"type": "object", "properties": properties, "required": []}
    return lambda ctx: ctx.session.elicit_form("Please fill this in", schema, ctx.request_id)


async def _need_sampling(ctx: Any) -> None:
    need_sampling(ctx)


TOOLS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "test_missing_capability": _need_sampling,
    "test_tool_with_logging": _log,
    "test_sampling": _sample,
    "test_elicitation_sep1034_defaults": _form(DEFAULTS),
    "test_elicitation_sep1330_enums": _form(ENUMS),
}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def _prompts(_ctx: Any, _params: Any) -> Json:
    return {
        **LISTED,
        "prompts": [
            {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in arguments]}
            for name, arguments in PROMPTS.items()
        ],
    }


async def _prompt(ctx: Any, params: Any) -> Json:
    if question := open_question(ctx, params):
        return question
    given = params.arguments or {}
    said: Json = {**TEXT, "text": " ".join(f"{name}='{value}'" for name, value in given.items()) or "simple"}
    embedded = {"uri": given.get("resourceUri", ""), "mimeType": "text/plain", "text": "some text"}
    shown: dict[str, list[Json]] = {
        "test_prompt_with_image": [IMAGE],
        "test_prompt_with_embedded_resource": [{"type": "resource", "resource": embedded}],
    }
    messages = [{"role": "user", "content": content} for content in [*shown.get(params.name, []), said]]
    return {**COMPLETE, "messages": messages}


async def _resources(_ctx: Any, _params: Any) -> Json:
    text = {"uri": "test://static-text", "name": "text", "mimeType": "text/plain"}
    binary = {"uri": "test://static-binary", "name": "binary", "mimeType": "image/png"}
    return {**LISTED, "resources": [text, binary]}


async def _templates(_ctx: Any, _params: Any) -> Json:
    return {**LISTED, "resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "template"}]}


async def _read(_ctx: Any, params: Any) -> Json:
    uri = str(params.uri)
    if uri == "test://static-binary":
        return {**LISTED, "contents": [{"uri": uri, "mimeType": "image/png", "blob": DATA}]}
    if not uri.startswith(("test://static-text", "test://template/")):
        raise MCPError(t.INVALID_PARAMS, "There is no such resource", {"uri": uri})
    return {**LISTED, "contents": [{"uri": uri, "mimeType": "text/plain", "text": f"the text of {uri}"}]}


async def _nothing(_ctx: Any, _params: Any) -> Json:
    return {}


async def _complete(_ctx: Any, _params: Any) -> Json:
    return {**COMPLETE, "completion": {"values": [], "total": 0, "hasMore": False}}


def complete(server: "Server[Any]") -> None:
    list_ours, call_ours = server.get_request_handler("tools/list"), server.get_request_handler("tools/call")
    assert list_ours
    assert call_ours

    async def list_tools(ctx: Any, params: t.PaginatedRequestParams) -> Any:
        ours: Any = await list_ours.handler(ctx, params)
        more = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in (*TOOLS, *ROUNDS)]
        return {**ours, "tools": [*ours["tools"], *more]}

    async def call(ctx: Any, params: t.CallToolRequestParams) -> Any:
        if params.name == "test_multiple_content_types":
            return {**COMPLETE, "content": [TEXT, IMAGE, RESOURCE]}
        if params.name in ROUNDS:
            return open_question(ctx, params) or {**COMPLETE, "content": [TEXT]}
        if params.name in TOOLS:
            await TOOLS[params.name](ctx)
            return {**COMPLETE, "content": [TEXT]}
        return await call_ours.handler(ctx, params)

    server.add_request_handler("tools/list", t.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", t.CallToolRequestParams, call)
    server.add_request_handler("prompts/list", t.PaginatedRequestParams, _prompts)
    server.add_request_handler("prompts/get", t.GetPromptRequestParams, _prompt)
    server.add_request_handler("resources/list", t.PaginatedRequestParams, _resources)
    server.add_request_handler("resources/templates/list", t.PaginatedRequestParams, _templates)
    server.add_request_handler("resources/read", t.ReadResourceRequestParams, _read)
    server.add_request_handler("resources/subscribe", t.SubscribeRequestParams, _nothing)
    server.add_request_handler("resources/unsubscribe", t.UnsubscribeRequestParams, _nothing)
    server.add_request_handler("completion/complete", t.CompleteRequestParams, _complete)
    server.add_request_handler("logging/setLevel", t.SetLevelRequestParams, _nothing)
