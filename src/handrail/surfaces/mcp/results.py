"""A result as MCP carries it: what the model sees as content, the rest of the envelope beside it."""

from typing import Any

from handrail.exports import media_of, text_of
from handrail.tool import ToolResult

ENVELOPE = "handrail/result"
"""Where the envelope stands in `_meta`, without the output."""


def to_mcp(result: ToolResult) -> dict[str, Any]:
    envelope = result.to_dict()
    output = envelope.pop("output")
    content = [_content(output)]
    if result.error and result.error.code == "approval_denied":  # the one error that a person must act on
        content.append({"type": "text", "text": result.error.suggestion})
    made = {
        "content": content,
        "isError": not result.success,
        "resultType": "complete",
        "_meta": {ENVELOPE: envelope},
    }
    if result.success and isinstance(output, dict) and not media_of(output):
        made["structuredContent"] = output
    return made


def _content(output: Any) -> dict[str, Any]:
    media = media_of(output)
    if media is None:
        return {"type": "text", "text": text_of(output)}
    kind, data = media
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "mimeType": kind, "data": data}
    return {"type": "resource", "resource": {"uri": "handrail:inline", "mimeType": kind, "blob": data}}
