"""Exports tools for Anthropic's Messages API."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from handrail.tools.exports import Json, api_name, plain
from handrail.tools.media_output import SHOWN_IMAGES, media_of
from handrail.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from handrail.tools.router import ToolRouter


def anthropic(tools: Iterable[Tool]) -> list[Json]:
    """Return the tools as the `tools` parameter takes them."""
    return [
        tool.builtin_for("anthropic")
        or {"name": api_name(tool.name), "description": tool.description, "input_schema": tool.params.schema()}
        for tool in tools
    ]


def answer_anthropic(router: "ToolRouter", tool_use: Any) -> Json:
    """Run the call in a `tool_use` block and return the `tool_result` block."""
    use = plain(tool_use)
    result = router.call_named(use["name"], use["input"], use["id"])
    block = {"type": "tool_result", "tool_use_id": use["id"], "content": _content(result)}
    return block if result.success else block | {"is_error": True}


def _content(result: ToolResult) -> Any:
    media = media_of(result.output)
    if media is None or media[0] not in (*SHOWN_IMAGES, "application/pdf"):
        return result.text
    source = {"type": "base64", "media_type": media[0], "data": media[1]}
    hints = [{"type": "text", "text": result.hints}] if result.hints else []
    return [{"type": "image" if media[0].startswith("image/") else "document", "source": source}, *hints]
