"""Implements `handrail acp`: offers the agent to an editor over the Agent Client Protocol."""

from typing import Any

import click

from handrail.dialects import NAMES
from handrail.settings import APPROVE
from handrail.surfaces.cli.agent import model_options, needs_extra
from handrail.surfaces.cli.options import log_option, network_option, preset_option, read_only_option, sandbox_option


@click.command("acp")
@model_options
@click.option("--dialect", type=click.Choice(NAMES), help="The tools; default: those that the model knows.")
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch.")
@preset_option
@read_only_option
@sandbox_option
@network_option
@log_option
def command(model: str | None, dialect: str | None, **options: Any) -> None:
    """Offer the agent to an editor. The editor starts this command and talks to it over standard input and output."""
    if model is None:
        raise click.UsageError("name a model with --model PROVIDER:NAME")
    with needs_extra():
        import asyncio  # noqa: PLC0415  only the server needs it

        from handrail.agent import Budget  # noqa: PLC0415  needs the packages of the extra
        from handrail.surfaces.acp.acp_server import serve  # noqa: PLC0415  needs the packages of the extra
    budget = Budget(*(options.pop(name) for name in Budget._fields))
    given = {name: value for name, value in options.items() if value is not None}
    asyncio.run(serve(model, dialect, budget, given))
