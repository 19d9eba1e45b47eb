"""Converts results to the form of MCP: output and hints for the model, the rest of the envelope in `_meta`."""

import json
from typing import Any

from handrail.tools.media_output import beside_media, media_of, text_of
from handrail.tools.tool import ToolResult

ENVELOPE = "handrail/result"
"""The key in `_meta` of the envelope without its output."""


def to_mcp(result: ToolResult) -> dict[str, Any]:
    """Return a result in the form of MCP."""
    envelope = result.to_dict()
    try:
        text = _checked(envelope)
    except UnicodeEncodeError:  # an error may repeat invalid text of the caller, but MCP needs UTF-8
        envelope = _replaced(envelope)
        text = _checked(envelope)
    output = envelope.pop("output")
    content = [_content(output, text)]
    hints = _replaced(result.hints)
    if hints:
        content.append({"type": "text", "text": hints})
    made = {
        "content": content,
        "isError": not result.success,
        "resultType": "complete",
        "_meta": {ENVELOPE: envelope},
    }
    if media_of(output):
        envelope |= {"output": fields} if (fields := beside_media(output)) else {}
    elif result.success and isinstance(output, dict):  # some clients show a model this object instead of the content
        made["structuredContent"] = {**output, "hints": hints} if hints else output
    return made


def _checked(envelope: dict[str, Any]) -> str:
    """Return the output as text; raise UnicodeEncodeError if the envelope cannot be sent as UTF-8."""
    rest = {name: value for name, value in envelope.items() if name != "output"}
    json.dumps(rest, ensure_ascii=False).encode()
    text = text_of(envelope["output"])
    text.encode()
    return text


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_replaced(name): _replaced(each) for name, each in value.items()}
    return [_replaced(each) for each in value] if isinstance(value, list) else value


def _content(output: Any, text: str) -> dict[str, Any]:
    media = media_of(output)
    if media is None:
        return {"type": "text", "text": text}
    kind, data = media
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "mimeType": kind, "data": data}
    return {"type": "resource", "resource": {"uri": "handrail:inline", "mimeType": kind, "blob": data}}
