"""Implements `handrail tools`: lists the tools of a dialect."""

import json
from collections.abc import Callable
from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.kernel.fs.boundary import FsBoundary
from handrail.library.load_settings import settings_for
from handrail.surfaces.cli.light.open_workspace import usage_errors
from handrail.surfaces.cli.options import workspace_options
from handrail.surfaces.cli.render import echo_json
from handrail.tools.exports.anthropic_api import anthropic
from handrail.tools.exports.gemini_api import gemini
from handrail.tools.exports.mcp_tools import mcp
from handrail.tools.exports.openai_api import openai_chat, openai_responses, why_not_strict
from handrail.tools.tool import Tool

_FORMS: dict[str, Callable[..., Any]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
    "functions": lambda tools: [tool.function() for tool in tools],
}
_STRICT = ("openai-chat", "openai-responses")
_CUSTOM = "openai-responses"


@click.command("tools")
@workspace_options
@click.option("--format", "form", type=click.Choice(["text", "json", *_FORMS]), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="Use OpenAI's strict mode; warn about tools that cannot be strict.")
@click.option("--custom", is_flag=True, help="Make tools with a grammar custom tools (openai-responses only).")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    dialect: str | None, root: str, form: str, as_json: bool, strict: bool, custom: bool, **options: Any
) -> None:
    """List the tools that a workspace offers, of one dialect or of all dialects."""
    if strict and form not in _STRICT:
        raise click.UsageError(f"only {' and '.join(_STRICT)} have a strict mode")
    if custom and form != _CUSTOM:
        raise click.UsageError(f"only {_CUSTOM} has custom tools")
    with usage_errors(root):
        boundary = FsBoundary(root)
        read_only = settings_for(boundary, options)[0].read_only
        boundary.close()
    names = [dialect] if dialect else NAMES
    tools = [tool for name in names for tool in load(name).tools.values()]
    offered = [tool for tool in tools if not (read_only and tool.requires_approval)]
    if form in _FORMS:
        _warn_not_strict(offered if strict else [])
        chosen = {name: True for name, given in (("strict", strict), ("custom", custom)) if given}
        echo_json(_FORMS[form](offered, **chosen), indent=2)
    elif form == "json" or as_json:
        echo_json([_described(tool) for tool in offered], indent=2)
    else:
        for tool in offered:
            click.echo(_text(tool))


def _warn_not_strict(tools: list[Tool]) -> None:
    for tool in tools:
        if why := why_not_strict(tool):
            click.echo(f"handrail: {tool.name} cannot be strict: {why}", err=True)


def _described(tool: Tool) -> dict[str, object]:
    described: dict[str, object] = {
        "name": tool.name,
        "dialect": tool.dialect,
        "description": tool.description,
        "risk_level": tool.risk,
        "required_permissions": tool.required_permissions,
        "requires_approval": tool.requires_approval,
        "input_schema": tool.params.schema(),
    }
    for name in ("category", "termination_behavior_doc", "custom_prompt"):
        if (value := getattr(tool, name)) is not None:
            described[name] = value
    return described


def _text(tool: Tool) -> str:
    lines = [f"{tool.name}  ({tool.dialect}, {tool.risk})", f"  {tool.description}"]
    for name, field in tool.params.fields.items():
        default = "" if field.required else f" [default: {json.dumps(field.default)}]"
        lines.append(f"    {name}: {field.description}{default}")
    return "\n".join([*lines, ""])
