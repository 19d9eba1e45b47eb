"""What a server offers: one dialect's tools, in one workspace or several."""

from dataclasses import dataclass
from typing import Any

from handrail.model.faults import BadParameters, Problem
from handrail.model.limits import Limits
from handrail.tools.exports import api_name
from handrail.tools.exports.mcp import mcp_tool
from handrail.tools.tool import Dialect, Tool
from handrail.workspace import Workspace

ARGUMENT = "workspace"


@dataclass(frozen=True, slots=True)
class Offer:
    workspaces: dict[str, Workspace]
    """By the name that the `workspace` argument takes; it exists only if there are several."""
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
    def _first(self) -> Workspace:
        return next(iter(self.workspaces.values()))

    def listed(self) -> list[dict[str, Any]]:
        """The tools as MCP lists them, in the order of the dialect."""
        forms = [mcp_tool(tool) for tool in self.tools.values()]
        for form in forms:
            if self.safe_names:
                form["name"] = api_name(form["name"])
            if len(self.workspaces) > 1:
                form["inputSchema"] = self._with_workspace(form["inputSchema"])
        return forms

    def _with_workspace(self, schema: dict[str, Any]) -> dict[str, Any]:
        argument = {"type": "string", "enum": [*self.workspaces], "description": "The workspace to work in."}
        return schema | {
            "properties": {ARGUMENT: argument, **schema["properties"]},
            "required": [ARGUMENT, *schema["required"]],
        }

    def instructions(self) -> str:
        if len(self.workspaces) == 1:
            return f"The workspace is {self._first.root}. Nothing outside of it can be reached."
        roots = "; ".join(f"{name}: {each.root}" for name, each in self.workspaces.items())
        return f"Name the workspace with each call. {roots}. Nothing outside of them can be reached."

    def place(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The workspace that a call names, and the tool's own arguments."""
        if len(self.workspaces) == 1:
            return next(iter(self.workspaces)), arguments
        rest = {name: value for name, value in arguments.items() if name != ARGUMENT}
        if ARGUMENT not in arguments:
            raise BadParameters([Problem("", "missing", ARGUMENT)])
        name = arguments[ARGUMENT]
        if name not in [*self.workspaces]:  # it may be anything, also what cannot be looked up
            raise BadParameters([Problem(ARGUMENT, "choice", ", ".join(self.workspaces), str(name))])
        return name, rest


def _named(workspaces: list[Workspace]) -> dict[str, Workspace]:
    named: dict[str, Workspace] = {}
    for workspace in workspaces:
        stem = workspace.root.rstrip("/").rpartition("/")[2] or "root"
        tries = (stem if n == 1 else f"{stem}-{n}" for n in range(1, len(workspaces) + 1))
        named[next(name for name in tries if name not in named)] = workspace
    return named
