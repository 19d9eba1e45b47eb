"""Offers tools to smolagents: `ToolCallingAgent(tools(workspace.tools("copilot")), model)`."""

from typing import Any

from smolagents import Tool as AgentTool

from handrail.tools.exports import api_name
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Tool


def tools(router: ToolRouter) -> list[AgentTool]:
    """Return the tools of a router as smolagents tools."""
    return [HandrailTool(router, tool) for tool in router.tools.values()]


class HandrailTool(AgentTool):  # type: ignore[misc]  # smolagents has no types
    """Calls one tool of a router and returns its result as text."""

    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, router: ToolRouter, tool: Tool) -> None:
        self.name, self.description = api_name(tool.name), tool.description
        self.inputs = {name: _input(each, name, tool) for name, each in tool.params.schema()["properties"].items()}
        self._router = router
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        return self._router.call_named(self.name, arguments).text


def _input(schema: dict[str, Any], name: str, tool: Tool) -> dict[str, Any]:
    """Return one parameter in the form of smolagents: a plain type, nullable if the parameter is optional."""
    kind = schema.get("type") or schema["anyOf"][0]["type"]
    optional = {} if tool.params.fields[name].required else {"nullable": True}
    return {"type": kind, "description": schema.get("description", name), **optional}
