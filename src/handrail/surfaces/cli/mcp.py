"""`handrail mcp`: the MCP server."""

import sys
from contextlib import ExitStack
from typing import Any

import click

from handrail.dialects import load
from handrail.exports import api_name
from handrail.kernel.state import read_text
from handrail.limits import Limits
from handrail.settings import APPROVE
from handrail.surfaces.cli import complete
from handrail.surfaces.cli.options import dialect_option, log_option, open_workspace, read_only_option, sandbox_option

DEFAULT = "copilot"
"""The dialect if none is named: files, search, commands and pages."""
SHORTEST_TOKEN = 16
ALONE = "handrail: waiting for an MCP client, which should start this by itself: see handrail config --help"


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    shell_complete=complete.directories,
    help="A workspace; several are told apart by name.",
)
@dialect_option
@click.option("--tools", metavar="A,B", help="Offer only these tools.")
@read_only_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves what writes, runs or fetches.")
@sandbox_option
@log_option
@click.option("--safe-names", is_flag=True, help="List file.read as file_read, for clients that forbid dots.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve Streamable HTTP instead of standard input.")
@click.option(
    "--token-file",
    metavar="FILE",
    shell_complete=complete.files,
    help="Bearer tokens, one a line; needed off the loopback interface.",
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A Host or Origin that may be served.")
def command(
    roots: tuple[str, ...],
    dialect: str | None,
    tools: str | None,
    safe_names: bool,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    **flags: Any,
) -> None:
    """Serve the tools of a dialect over the Model Context Protocol."""
    spoken = load(dialect or DEFAULT)
    only = frozenset(name.strip() for name in tools.split(",")) if tools is not None else None
    if unknown := (only or frozenset()) - {*spoken.tools, *map(api_name, spoken.tools)}:
        raise click.UsageError(f"the {spoken.name} dialect has no tool {min(unknown)}")
    tokens = _tokens(token_file) if token_file else []
    with ExitStack() as opened:
        workspaces = [opened.enter_context(open_workspace(root, **flags)) for root in roots or (".",)]

        from handrail.surfaces.mcp.offer import Offer  # noqa: PLC0415  after all that can be refused without the SDK
        from handrail.surfaces.mcp.server import build  # noqa: PLC0415  only for what is served

        offer = Offer.of(workspaces, spoken, only=only, safe_names=safe_names)
        if address is None:
            from handrail.surfaces.mcp.stdio import serve_stdio  # noqa: PLC0415  only for what is served

            if sys.stdin.isatty():
                click.echo(ALONE, err=True)
            serve_stdio(build(offer), offer.limits)
        else:
            _serve_http(build(offer), offer.limits, address, tokens, hosts)


def _serve_http(server: Any, limits: Limits, address: str, tokens: list[str], hosts: tuple[str, ...]) -> None:
    from handrail.surfaces.mcp.http import BadAddress, serve_http  # noqa: PLC0415  only for what is served

    try:
        serve_http(server, limits, address, tokens, hosts)
    except BadAddress as error:
        raise click.UsageError(str(error)) from None


def _tokens(path: str) -> list[str]:
    tokens = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    if not tokens:
        raise click.UsageError(f"there is no token in {path}")
    if any(len(token) < SHORTEST_TOKEN for token in tokens):
        raise click.UsageError(f"a token in {path} is shorter than {SHORTEST_TOKEN} characters")
    return tokens
