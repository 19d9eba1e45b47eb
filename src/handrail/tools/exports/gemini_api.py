"""Exports tools for the Gemini API."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from handrail.tools.exports import Json, plain
from handrail.tools.media_output import SHOWN_IMAGES, media_of, text_of
from handrail.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from handrail.tools.router import ToolRouter


def gemini(tools: Iterable[Tool]) -> Json:
    """Return the tools as one entry of the `tools` parameter."""
    return {
        "functionDeclarations": [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.params.schema()}
            for tool in tools
        ]
    }


def answer_gemini(router: "ToolRouter", function_call: Any) -> Json:
    """Run a `functionCall` and return the part with the `functionResponse`."""
    call = plain(function_call)
    result = router.call_named(call["name"], call.get("args"), call.get("id"))
    response = {"output" if result.success else "error": _output(result)}
    if result.hints and not isinstance(result.output, str):
        response["hints"] = result.hints
    known = {"id": call["id"]} if call.get("id") else {}
    shown = {"parts": [result.output]} if _has_part(result) else {}
    return {"functionResponse": {**known, "name": call["name"], "response": response, **shown}}


def _has_part(result: ToolResult) -> bool:
    """Return whether the API takes the output as a part of its own: an image, or a PDF."""
    media = media_of(result.output)
    return media is not None and media[0] in (*SHOWN_IMAGES, "application/pdf")


def _output(result: ToolResult) -> Any:
    """Return a text with its hints. An object stays unchanged and its hints follow it; an image is a part."""
    if _has_part(result):
        return text_of(result.output)
    return result.text if isinstance(result.output, str) else result.output
