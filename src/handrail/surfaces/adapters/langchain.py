"""Offers tools to LangChain and LangGraph: `model.bind_tools(tools(workspace.tools("copilot")))`."""

from typing import Any

from langchain_core.tools import StructuredTool, ToolException

from handrail.tools.exports import api_name
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Tool, ToolResult


def tools(router: ToolRouter) -> list[StructuredTool]:
    """Return the tools of a router as LangChain tools."""
    return [_tool(router, tool) for tool in router.tools.values()]


def _tool(router: ToolRouter, tool: Tool) -> StructuredTool:
    def run(**arguments: Any) -> str:
        return _answer(router.call_named(tool.name, arguments))

    async def run_async(**arguments: Any) -> str:
        return _answer(await router.acall(tool.name, arguments))

    return StructuredTool(
        name=api_name(tool.name),
        description=tool.description,
        args_schema=tool.params.schema(),
        func=run,
        coroutine=run_async,
        handle_tool_error=True,
    )


def _answer(result: ToolResult) -> str:
    if not result.success:
        raise ToolException(result.text)  # LangChain turns this into a message with the status "error"
    return result.text
