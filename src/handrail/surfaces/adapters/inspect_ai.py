"""Offers tools to Inspect: `react(tools=tools(workspace.tools("codex")))`."""

from typing import Any

from inspect_ai.tool import Tool as InspectTool
from inspect_ai.tool import ToolDef, ToolError, ToolParams
from inspect_ai.util import JSONSchema

from handrail.tools.exports import api_name
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Tool, text_of


def tools(router: ToolRouter) -> list[InspectTool]:
    """Return the tools of a router as Inspect tools."""
    return [_tool(router, tool) for tool in router.tools.values()]


def _tool(router: ToolRouter, tool: Tool) -> InspectTool:
    async def execute(**arguments: Any) -> str:
        result = await router.acall(tool.name, arguments)
        if not result.success:
            raise ToolError(text_of(result.output))
        return text_of(result.output)

    schema = tool.params.schema()
    parameters = ToolParams(
        properties={name: JSONSchema.model_validate(each) for name, each in schema["properties"].items()},
        required=[name for name, declared in tool.params.fields.items() if declared.required],
    )
    return ToolDef(execute, api_name(tool.name), tool.description, parameters).as_tool()
