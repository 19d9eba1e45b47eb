"""Exports tools as the Model Context Protocol lists them."""

from collections.abc import Iterable

from handrail.model.effects import mcp_hints
from handrail.tools.exports import Json
from handrail.tools.tool import Tool


def mcp(tools: Iterable[Tool]) -> list[Json]:
    """Return the tools as `tools/list` answers."""
    return [mcp_tool(tool) for tool in tools]


def mcp_tool(tool: Tool) -> Json:
    """Return one tool with its schemas and hints."""
    form: Json = {"name": tool.name, "description": tool.description, "inputSchema": tool.params.schema()}
    if tool.output is not None:
        form["outputSchema"] = tool.output
    return form | {"annotations": mcp_hints(tool.effects)}
