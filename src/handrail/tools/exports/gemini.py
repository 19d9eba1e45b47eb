"""The tools for the Gemini API."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from handrail.tools.exports import Json, plain
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
    return {"functionResponse": {**known, "name": call["name"], "response": response}}


def _output(result: ToolResult) -> Any:
    """Return a text with its hints. An object stays as it is: its hints go beside it."""
    return result.text if isinstance(result.output, str) else result.output
