"""Offers tools to pydantic-ai: `Agent(model, toolsets=[toolset(workspace.tools("context"))])`."""

from typing import Any

from pydantic_ai import FunctionToolset
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import Tool as AgentTool

from handrail.tools.exports import api_name
from handrail.tools.media_output import media_of
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Tool


def toolset(router: ToolRouter) -> FunctionToolset[Any]:
    """Return the tools of a router as a pydantic-ai toolset."""
    return FunctionToolset([_tool(router, tool) for tool in router.tools.values()])


def _tool(router: ToolRouter, tool: Tool) -> AgentTool[Any]:
    async def run(**arguments: Any) -> Any:
        result = await router.acall(tool.name, arguments)
        if not result.success:
            raise ToolFailed(result.text)
        return result.text if result.hints or media_of(result.output) else result.output

    return AgentTool.from_schema(run, api_name(tool.name), tool.description, tool.params.schema())
