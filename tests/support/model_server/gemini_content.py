"""Speaks the Gemini API, `generateContent` and `streamGenerateContent`."""

from typing import Any

from support.model_server.script import Asked, Offered, Reply, Say, events, halves

_ENDS = {"stop": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY"}


def read(body: dict[str, Any]) -> Asked:
    declared = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
    parts = [part for each in body["contents"] for part in each.get("parts", [])]
    results = [str(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
    return Asked([Offered(each["name"]) for each in declared], results, body)


def write(reply: Reply, body: dict[str, Any]) -> bytes | dict[str, Any]:
    if isinstance(reply, Say):
        texts = halves(reply.text) if body.get("stream") else (reply.text,)
        parts: list[dict[str, Any]] = [{"text": each} for each in texts]
    else:
        parts = [{"functionCall": {"id": reply.id, "name": reply.tool.whole, "args": reply.arguments}}]
    answers = [_answer(part) for part in parts]
    answers[-1]["candidates"][0]["finishReason"] = _ENDS[reply.end] if isinstance(reply, Say) else "STOP"
    return events(*answers) if body.get("stream") else answers[0]


def _answer(part: dict[str, Any]) -> dict[str, Any]:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
