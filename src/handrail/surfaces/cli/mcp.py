"""Implements `handrail mcp`: starts the MCP server."""

from typing import Any

import click

from handrail.settings import APPROVE
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light.serve_mcp import run
from handrail.surfaces.cli.options import (
    dialect_options,
    image_options,
    layered_option,
    log_option,
    network_option,
    page_option,
    preset_option,
    read_only_option,
    sandbox_option,
)


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_paths.directories,
    help="A workspace; if there are several, each call names one.",
)
@image_options
@dialect_options
@layered_option
@click.option("--tools", metavar="A,B", help="Offer only these tools.")
@read_only_option
@preset_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch.")
@network_option
@sandbox_option
@log_option
@click.option("--safe-names", is_flag=True, help="List file.read as file_read, for clients that forbid dots.")
@click.option("--with-undo", is_flag=True, help="Offer also the tools history, undo, restore and mark.")
@page_option
@click.option("--http", "address", metavar="HOST:PORT", help="Serve Streamable HTTP instead of standard input.")
@click.option(
    "--token-file",
    metavar="FILE",
    shell_complete=complete_paths.files,
    help="Bearer tokens for HTTP, one per line; default: a new token, which is shown.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="Serve this machine over HTTP without a token; calls that need approval are refused.",
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A Host or Origin to accept.")
def command(**given: Any) -> None:
    """Serve the tools of a dialect over the Model Context Protocol."""
    raise SystemExit(run(**given))
