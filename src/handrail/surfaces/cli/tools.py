"""`handrail tools`: what a dialect offers."""

import json
from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.kernel.boundary import FsBoundary
from handrail.surfaces.cli.options import usage_errors, workspace_options
from handrail.surfaces.cli.show import echo_json
from handrail.tool import Tool
from handrail.workspace import settings_for


@click.command("tools")
@workspace_options
@click.option("--format", "form", type=click.Choice(["text", "functions", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(dialect: str | None, root: str, form: str, as_json: bool, **options: Any) -> None:
    """List the tools of a dialect, or of all of them, that a workspace offers."""
    with usage_errors(root):
        boundary = FsBoundary(root)
        read_only = settings_for(boundary, options)[0].read_only
        boundary.close()
    names = [dialect] if dialect else NAMES
    tools = [tool for name in names for tool in load(name).tools.values()]
    offered = [tool for tool in tools if not (read_only and tool.requires_approval)]
    if form == "functions":
        echo_json([tool.function() for tool in offered], indent=2)
    elif form == "json" or as_json:
        echo_json([_described(tool) for tool in offered], indent=2)
    else:
        for tool in offered:
            click.echo(_text(tool))


def _described(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "dialect": tool.dialect,
        "description": tool.description,
        "risk_level": tool.risk,
        "permissions": tool.permissions,
        "requires_approval": tool.requires_approval,
        "input_schema": tool.params.schema(),
    }


def _text(tool: Tool) -> str:
    lines = [f"{tool.name}  ({tool.dialect}, {tool.risk})", f"  {tool.description}"]
    for name, field in tool.params.fields.items():
        default = "" if field.required else f" [default: {json.dumps(field.default)}]"
        lines.append(f"    {name}: {field.description}{default}")
    return "\n".join([*lines, ""])
