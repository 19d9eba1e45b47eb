"""Implements `handrail call TOOL [JSON | KEY=VALUE …]`."""

from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light.call_tool import run
from handrail.surfaces.cli.options import json_option, workspace_options


def _complete_tool(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    names = [ctx.params["dialect"]] if ctx.params.get("dialect") else list(NAMES)
    return sorted({tool for name in names for tool in load(name).tools if tool.startswith(incomplete)})


@click.command("call")
@click.argument("tool", shell_complete=_complete_tool)
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE …]", shell_complete=complete_paths.arguments)
@workspace_options
@click.option("--validate", is_flag=True, help="Say what is wrong with the call; run nothing and ask nothing.")
@json_option
def command(**given: Any) -> None:
    """Call one tool and print its answer.

    Give the parameters as one JSON object or as KEY=VALUE pairs. A value is read as text if the tool expects text, else
    as JSON. A single - reads the JSON object from standard input.
    """
    raise SystemExit(run(**given))
