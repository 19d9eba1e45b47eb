"""Offers tools to the OpenAI Agents SDK: `Agent(tools=tools(workspace.tools("codex")))`."""

from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from handrail.tools.exports import arguments_of
from handrail.tools.exports.openai_api import openai_chat
from handrail.tools.router import ToolRouter


def tools(router: ToolRouter, *, strict: bool = True) -> list[FunctionTool]:
    """Return the tools of a router as function tools; with `strict`, in strict mode if a tool's parameters allow it."""
    return [_tool(router, form["function"]) for form in openai_chat(router.tools.values(), strict=strict)]


def _tool(router: ToolRouter, form: dict[str, Any]) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        result = await router.acall(
            router.real_name(form["name"]), arguments_of(arguments), call_id=context.tool_call_id
        )
        return result.text

    return FunctionTool(
        name=form["name"],
        description=form["description"],
        params_json_schema=form["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=form.get("strict", False),
    )
