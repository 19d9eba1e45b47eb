"""Implements `handrail prompt`: prints the system-prompt section of a dialect."""

import click

from handrail.dialects import load
from handrail.surfaces.cli.options import dialect_options, read_only_option
from handrail.tools.system_prompt import system_prompt


@click.command("prompt")
@dialect_options
@read_only_option
def command(dialect: str | None, read_only: bool | None) -> None:
    """Print the section of a system prompt that describes a dialect's tools."""
    if dialect is None:
        raise click.UsageError("choose the tools to describe with --dialect or --model")
    dialect_name = load(dialect)
    offered = [tool for tool in dialect_name.tools.values() if not (read_only and tool.requires_approval)]
    click.echo(system_prompt(dialect_name, offered), nl=False)
