"""Speaks the Responses API of OpenAI, streamed and whole."""

import json
from collections.abc import Iterator
from typing import Any

from support.model_server.script import Asked, Offered, Reply, Say, events, halves

_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "mcp_tool_call_output",
    "shell_call_output",
    "apply_patch_call_output",
)
_BUILTIN = {"shell": "action", "apply_patch": "operation"}
"""The built-in tools that need no schema, and the field of their calls with the parameters."""

_ENDS = {"stop": "", "length": "max_output_tokens", "filter": "content_filter"}


def read(body: dict[str, Any]) -> Asked:
    tools = [
        Offered(inner["name"], each.get("name", "") if "tools" in each else "")
        for each in body.get("tools", [])
        for inner in each.get("tools", [each])
        if "name" in inner
    ]
    tools += [Offered(kind) for kind in _BUILTIN if {"type": kind} in body.get("tools", [])]
    items = body["input"] if isinstance(body["input"], list) else []
    return Asked(tools, [_text(each["output"]) for each in items if each.get("type") in _RESULTS], body)


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "".join(each["text"] if "text" in each else json.dumps(each) for each in output)


def write(reply: Reply, body: dict[str, Any]) -> bytes | dict[str, Any]:
    item = _item(reply, body)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    response = {"id": "resp_1", "object": "response", "model": body.get("model", ""), "usage": usage}
    cause = _ENDS[reply.end] if isinstance(reply, Say) else ""
    status = {"status": "incomplete", "incomplete_details": {"reason": cause}} if cause else {"status": "completed"}
    done = {**response, **status, "output": [item]}
    if not body.get("stream"):
        return done
    return events(
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        *_pieces(reply, item),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": f"response.{status['status']}", "response": done},
        named=True,
    )


def _pieces(reply: Reply, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events in which an item grows."""
    empty: dict[str, Any] = {"content": []} if isinstance(reply, Say) else {"arguments": ""}
    started = {**item, **empty, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": 0, "item": started}
    if (built_in := item["type"]) in ("shell_call", "apply_patch_call"):
        piece = "command" if built_in == "shell_call" else "operation_diff"
        place = {"item_id": item["id"], "output_index": 0, "command_index": 0}
        yield {"type": f"response.{built_in}_{piece}.delta", **place, "delta": "x"}
        yield {"type": f"response.{built_in}_{piece}.done", **place, "diff": "x", "command": "x"}
        return
    kind = "output_text" if isinstance(reply, Say) else "function_call_arguments"
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0, "logprobs": []}
    for piece in halves(reply.text):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece}
    yield {"type": f"response.{kind}.done", **place, "text": reply.text, "arguments": reply.text}


def _item(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    if isinstance(reply, Say):
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    if {"type": reply.tool.name} in body.get("tools", []):
        about = {"call_id": reply.id, "status": "completed", _BUILTIN[reply.tool.name]: reply.arguments}
        return {"type": f"{reply.tool.name}_call", "id": f"item_{reply.id}", **about}
    item = {"type": "function_call", "id": f"fc_{reply.id}", "call_id": reply.id, "status": "completed"}
    item |= {"name": reply.tool.name, "arguments": reply.text}
    return {**item, "namespace": reply.tool.namespace} if reply.tool.namespace else item
