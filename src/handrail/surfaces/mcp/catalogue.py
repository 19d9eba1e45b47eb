"""Lists the tools that a server offers: one dialect in one or more workspaces."""

from typing import Any, NamedTuple

from handrail.model.faults import BadParameters, Problem
from handrail.model.limits import Limits
from handrail.tools.exports import api_name
from handrail.tools.exports.mcp_tools import mcp_tool
from handrail.tools.tool import Dialect, Tool
from handrail.workspace import Workspace

ARGUMENT = "workspace"


class Offer(NamedTuple):
    """Holds the workspaces and tools that a server offers."""

    workspaces: dict[str, Workspace]
    """Workspaces by name. Calls have a `workspace` argument only if there are several workspaces."""
    dialect: Dialect
    tools: dict[str, Tool]
    safe_names: bool = False

    @classmethod
    def of(
        cls,
        workspaces: list[Workspace],
        dialect: Dialect,
        *,
        only: frozenset[str] | None = None,
        safe_names: bool = False,
    ) -> "Offer":
        """Select the tools in `only`, or all; if every workspace is read-only, leave out tools that need approval."""
        tools = {
            name: tool
            for name, tool in dialect.tools.items()
            if (only is None or name in only or api_name(name) in only)
            and not (tool.requires_approval and all(each.settings.read_only for each in workspaces))
        }
        return cls(_named(workspaces), dialect, tools, safe_names)

    @property
    def limits(self) -> Limits:
        return self._first.settings.limits

    @property
    def telemetry(self) -> bool:
        """True if calls are described as OpenTelemetry spans."""
        return self._first.settings.telemetry != "off"

    @property
    def _first(self) -> Workspace:
        return next(iter(self.workspaces.values()))

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools in the form of MCP, in the order of the dialect."""
        forms = [mcp_tool(tool) for tool in self.tools.values()]
        for form in forms:
            if self.safe_names:
                form["name"] = api_name(form["name"])
            if len(self.workspaces) > 1:
                form["inputSchema"] = self._with_workspace(form["inputSchema"])
        return forms

    def _with_workspace(self, schema: dict[str, Any]) -> dict[str, Any]:
        argument = {"type": "string", "enum": [*self.workspaces], "description": "The workspace of this call."}
        return schema | {
            "properties": {ARGUMENT: argument, **schema["properties"]},
            "required": [ARGUMENT, *schema["required"]],
        }

    def instructions(self) -> str:
        """Return the instructions that the server sends to a client."""
        if len(self.workspaces) == 1:
            return f"The workspace is {self._first.root}. Tools cannot reach anything outside the workspace."
        roots = "; ".join(f"{name}: {each.root}" for name, each in self.workspaces.items())
        return f"Name the workspace in each call. {roots}. Tools cannot reach anything outside the workspaces."

    def place(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the name of the workspace of a call, and the tool's own arguments."""
        if len(self.workspaces) == 1:
            return next(iter(self.workspaces)), arguments
        rest = {name: value for name, value in arguments.items() if name != ARGUMENT}
        if ARGUMENT not in arguments:
            raise BadParameters([Problem("", "missing", ARGUMENT)])
        name = arguments[ARGUMENT]
        if name not in [*self.workspaces]:  # the name may be any JSON value, also an unhashable one
            raise BadParameters([Problem(ARGUMENT, "choice", ", ".join(self.workspaces), str(name))])
        return name, rest


def _named(workspaces: list[Workspace]) -> dict[str, Workspace]:
    """Return the workspaces by the last part of their root; number equal names."""
    named: dict[str, Workspace] = {}
    for workspace in workspaces:
        stem = workspace.root.rstrip("/").rpartition("/")[2] or "root"
        tries = (stem if n == 1 else f"{stem}-{n}" for n in range(1, len(workspaces) + 1))
        named[next(name for name in tries if name not in named)] = workspace
    return named
