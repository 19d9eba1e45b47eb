"""Implements `handrail mcp`: starts the MCP server."""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from handrail.dialects import load
from handrail.kernel.host.state_dir import read_text
from handrail.kernel.host.std_streams import file_behind_stderr, say
from handrail.settings import APPROVE
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light_options import found_workspace
from handrail.surfaces.cli.options import (
    dialect_options,
    log_option,
    network_option,
    open_workspace,
    preset_option,
    read_only_option,
    sandbox_option,
)
from handrail.tools.exports import api_name
from handrail.workspace import Workspace

if TYPE_CHECKING:
    from handrail.surfaces.mcp.catalogue import Offer

DEFAULT = "copilot"
"""The dialect if the user names none: it has files, search, commands and web pages."""
SHORTEST_TOKEN = 16
WAITING = "handrail: waiting for an MCP client; clients usually start this command: see handrail config --help"


@click.command("mcp")
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_paths.directories,
    help="A workspace; if there are several, each call names one.",
)
@dialect_options
@click.option("--tools", metavar="A,B", help="Offer only these tools.")
@read_only_option
@preset_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch.")
@network_option
@sandbox_option
@log_option
@click.option("--safe-names", is_flag=True, help="List file.read as file_read, for clients that forbid dots.")
@click.option("--with-undo", is_flag=True, help="Offer also the tools history, undo, restore and mark.")
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
    dialect_name = load(dialect or DEFAULT)
    only = frozenset(name.strip() for name in tools.split(",")) if tools is not None else None
    if flags.pop("with_undo"):
        from handrail.undo_tools import undoing, with_undo_tools  # noqa: PLC0415  few servers offer it

        dialect_name, only = with_undo_tools(dialect_name), None if only is None else only | {*undoing.tools}
    if unknown := (only or frozenset()) - {*dialect_name.tools, *map(api_name, dialect_name.tools)}:
        raise click.UsageError(f"unknown tool {min(unknown)}: the {dialect_name.name} dialect does not have it")
    tokens, no_token = _tokens(token_file) if token_file else [], flags.pop("no_token")
    with ExitStack() as opened:
        workspaces = [opened.enter_context(open_workspace(root, tell=_tell, **flags)) for root in roots or (_here(),)]
        if address is not None:
            _check_secrecy(workspaces, token_file, no_token=no_token)

        from handrail.surfaces.mcp.catalogue import Offer  # noqa: PLC0415  the checks above do not need it

        offer = Offer.of(workspaces, dialect_name, only=only, safe_names=safe_names)
        if address is None:
            from handrail.surfaces.mcp.stdio import serve_stdio  # noqa: PLC0415  needed for this transport only

            if sys.stdin.isatty():
                click.echo(WAITING, err=True)
            serve_stdio(offer)
        else:
            made = [] if tokens or no_token else [_new_token()]
            _serve_http(offer, address, tokens, hosts, made)


def _here() -> str:
    """Return the directory in which the client started the server; refuse the home of the user and what is above."""
    found_workspace(silent=True)
    return "."


def _tell(line: str) -> None:
    """Print a line for the user; clients pass only the answers of a server to the model."""
    say(f"handrail: {line}")


def _check_secrecy(workspaces: list[Workspace], token_file: str | None, *, no_token: bool) -> None:
    """Refuse settings that let a command of the agent act as a client and approve calls."""
    if no_token and token_file:
        raise click.UsageError("--no-token and --token-file exclude each other")
    if no_token and any(each.settings.approve == "host" for each in workspaces):
        raise click.UsageError(
            "--no-token and approve = host exclude each other: every client could approve its own calls"
        )
    kept = token_file or ("" if no_token else file_behind_stderr())
    if kept and any(each.agent_reads(kept) for each in workspaces):
        what = "the token file" if token_file else "standard error, which shows the token,"
        raise click.UsageError(f"{what} is a file that the agent can read: {kept}")


def _serve_http(offer: "Offer", address: str, tokens: list[str], hosts: tuple[str, ...], made: list[str]) -> None:
    from handrail.surfaces.mcp.http import BadAddress, serve_http  # noqa: PLC0415  loads the SDK
    from handrail.surfaces.mcp.server import build  # noqa: PLC0415  loads the SDK

    try:
        serve_http(build(offer), offer.limits, address, tokens + made, hosts, shown="".join(made))
    except BadAddress as error:
        raise click.UsageError(str(error)) from None


def _new_token() -> str:
    from secrets import token_urlsafe  # noqa: PLC0415  needed for HTTP only

    return token_urlsafe(32)


def _tokens(path: str) -> list[str]:
    tokens = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    if not tokens:
        raise click.UsageError(f"no token found in {path}")
    if any(len(token) < SHORTEST_TOKEN for token in tokens):
        raise click.UsageError(f"a token in {path} is shorter than {SHORTEST_TOKEN} characters")
    return tokens
