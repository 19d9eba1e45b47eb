"""Speaks the Messages API of Anthropic, streamed and whole."""

from typing import Any

from support.model_server.script import Asked, Offered, Reply, Say, events, halves

_ENDS = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal"}


def read(body: dict[str, Any]) -> Asked:
    blocks = [block for each in body["messages"] if isinstance(each["content"], list) for block in each["content"]]
    results = [_text(each.get("content", "")) for each in blocks if each["type"] == "tool_result"]
    return Asked([Offered(each["name"]) for each in body.get("tools", []) if "name" in each], results, body)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each.get("text", "") for each in content)


def write(reply: Reply, body: dict[str, Any]) -> bytes | dict[str, Any]:
    if isinstance(reply, Say):
        block: dict[str, Any] = {"type": "text", "text": reply.text}
        start, kind, piece, reason = {**block, "text": ""}, "text_delta", "text", _ENDS[reply.end]
    else:
        block = {"type": "tool_use", "id": f"toolu_{reply.id}", "name": reply.tool.whole, "input": reply.arguments}
        start, kind, piece, reason = {**block, "input": {}}, "input_json_delta", "partial_json", "tool_use"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "")}
    ending = {"stop_reason": reason, "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5}
    if not body.get("stream"):
        return {**message, "content": [block], **ending, "usage": usage}
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    return events(
        {"type": "message_start", "message": opening},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": kind, piece: each}}
            for each in halves(reply.text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
        named=True,
    )
