"""Speaks the Chat Completions API of OpenAI, streamed and whole."""

from typing import Any

from support.model_server.script import Asked, Offered, Reply, Say, events, halves

_ENDS = {"stop": "stop", "length": "length", "filter": "content_filter"}


def read(body: dict[str, Any]) -> Asked:
    tools = [Offered(each["function"]["name"]) for each in body.get("tools") or []]
    results = [_text(each["content"]) for each in body["messages"] if each["role"] == "tool"]
    return Asked(tools, results, body)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each.get("text", "") for each in content)


def write(reply: Reply, body: dict[str, Any]) -> bytes | dict[str, Any]:
    head = {"id": "chat_1", "created": 0, "model": body.get("model", "")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    reason = _ENDS[reply.end] if isinstance(reply, Say) else "tool_calls"
    if not body.get("stream"):
        choice = {"index": 0, "message": _message(reply, reply.text), "finish_reason": reason}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**head, "object": "chat.completion.chunk"}
    first, second = halves(reply.text)
    choices = [
        {"index": 0, "delta": _message(reply, first), "finish_reason": None},
        {"index": 0, "delta": _more(reply, second), "finish_reason": None},
    ]
    return (
        events(
            *({**chunk, "choices": [choice]} for choice in choices),
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        )
        + b"data: [DONE]\n\n"
    )


def _message(reply: Reply, text: str) -> dict[str, Any]:
    if isinstance(reply, Say):
        return {"role": "assistant", "content": text}
    function = {"name": reply.tool.whole, "arguments": text}
    call = {"index": 0, "id": reply.id, "type": "function", "function": function}
    return {"role": "assistant", "tool_calls": [call]}


def _more(reply: Reply, text: str) -> dict[str, Any]:
    """Return the second piece of a message."""
    if isinstance(reply, Say):
        return {"content": text}
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
