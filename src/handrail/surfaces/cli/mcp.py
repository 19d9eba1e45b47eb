"""`handrail mcp`: the MCP server."""

from contextlib import ExitStack
from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.exports import api_name
from handrail.settings import APPROVE, SANDBOX
from handrail.surfaces.cli.options import dialect_option, open_workspace, read_only_option


@click.command("mcp")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A workspace; several are told apart by name.")
@dialect_option
@click.option("--tools", metavar="A,B", help="Offer only these tools.")
@read_only_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves what writes, runs or fetches.")
@click.option("--sandbox", type=click.Choice(SANDBOX), help="What confines commands.")
@click.option("--log", metavar="FILE", help="Where the session log goes.")
@click.option("--safe-names", is_flag=True, help="List file.read as file_read, for clients that forbid dots.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve Streamable HTTP instead of standard input.")
@click.option("--token-file", metavar="FILE", help="Bearer tokens, one a line; needed off the loopback interface.")
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
    spoken = load(dialect or NAMES[0])
    only = frozenset(name.strip() for name in tools.split(",")) if tools is not None else None
    if unknown := (only or frozenset()) - {*spoken.tools, *map(api_name, spoken.tools)}:
        raise click.UsageError(f"the {spoken.name} dialect has no tool {min(unknown)}")
    with ExitStack() as opened:
        workspaces = [opened.enter_context(open_workspace(root, **flags)) for root in roots or (".",)]

        import anyio  # noqa: PLC0415  after all that can be refused without it

        from handrail.surfaces.mcp.offer import Offer  # noqa: PLC0415
        from handrail.surfaces.mcp.server import build  # noqa: PLC0415

        offer = Offer.of(workspaces, spoken, only=only, safe_names=safe_names)
        if address is None:
            from handrail.surfaces.mcp.stdio import serve  # noqa: PLC0415

            anyio.run(serve, build(offer), offer.limits.message_bytes)
        else:
            from handrail.surfaces.mcp.http import serve_http  # noqa: PLC0415

            serve_http(offer, address, token_file, hosts)
