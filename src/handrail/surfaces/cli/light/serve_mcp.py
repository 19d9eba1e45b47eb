"""Runs `handrail mcp`, which serves the tools of a dialect over the Model Context Protocol. Needs no click."""

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from handrail.dialects import load
from handrail.kernel.host.state_dir import read_text
from handrail.kernel.host.std_streams import file_behind_stderr, say
from handrail.surfaces.cli.light.find_workspace import found_workspace
from handrail.surfaces.cli.light.light_words import FLAG, WORKSPACE_OPTIONS, Option, Ordinary
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.light.plain_output import echo, usage_error
from handrail.tools.exports import api_name
from handrail.workspace import Workspace

if TYPE_CHECKING:
    from handrail.surfaces.mcp.catalogue import Offer

DEFAULT = "copilot"
"""The dialect if the user names none: it has files, search, commands and web pages."""
SHORTEST_TOKEN = 16
WAITING = "handrail: waiting for an MCP client; clients usually start this command: see handrail config --help"
ORDINARY = Ordinary(
    {
        **WORKSPACE_OPTIONS,
        "--root": Option("roots", many=True),
        "--tools": Option("tools"),
        "--safe-names": Option("safe_names", FLAG, default=False),
        "--with-undo": Option("with_undo", FLAG, default=False),
        "--page": Option("page", FLAG, default=False),
        "--http": Option("address"),
        "--token-file": Option("token_file"),
        "--no-token": Option("no_token", FLAG, default=False),
        "--allow-host": Option("hosts", many=True),
    }
)


def run(
    *,
    roots: tuple[str, ...],
    dialect: str | None,
    tools: str | None,
    safe_names: bool,
    address: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    **flags: Any,
) -> int:
    """Serve until the client or a signal ends the server; return the exit code of the process."""
    dialect_name = load(dialect or DEFAULT)
    only = frozenset(name.strip() for name in tools.split(",")) if tools is not None else None
    if flags.pop("with_undo"):
        from handrail.library.undo_tools import undoing, with_undo_tools  # noqa: PLC0415  few servers offer it

        dialect_name, only = with_undo_tools(dialect_name), None if only is None else only | {*undoing.tools}
    if unknown := (only or frozenset()) - {*dialect_name.tools, *map(api_name, dialect_name.tools)}:
        raise usage_error(f"unknown tool {min(unknown)}: the {dialect_name.name} dialect does not have it")
    page = flags.pop("page")
    tokens, no_token = _tokens(token_file) if token_file else [], flags.pop("no_token")
    flags["network"] = flags["network"] or None
    places = roots or ("" if flags.get("image") else _here(),)
    with ExitStack() as opened:
        workspaces = [opened.enter_context(open_workspace(root, tell=_tell, **flags)) for root in places]
        if address is not None:
            _check_secrecy(workspaces, token_file, no_token=no_token)

        from handrail.surfaces.mcp.catalogue import Offer  # noqa: PLC0415  the checks above do not need it

        offer = Offer.of(workspaces, dialect_name, only=only, safe_names=safe_names)

        def show_page() -> None:
            if page:
                from handrail.surfaces.cli.light.page_address import print_page_address  # noqa: PLC0415  only with it

                print_page_address(workspaces)

        if address is None:
            from handrail.surfaces.mcp.stdio import serve_stdio  # noqa: PLC0415  needed for this transport only

            if sys.stdin.isatty():
                echo(WAITING, err=True)
            serve_stdio(offer, show_page)
        else:
            made = [] if tokens or no_token else [_new_token()]
            show_page()
            _serve_http(offer, address, tokens, hosts, made)
    return 0


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
        raise usage_error("--no-token and --token-file exclude each other")
    if no_token and any(each.settings.approve == "host" for each in workspaces):
        raise usage_error("--no-token and approve = host exclude each other: every client could approve its own calls")
    kept = token_file or ("" if no_token else file_behind_stderr())
    if kept and any(each.agent_reads(kept) for each in workspaces):
        what = "the token file" if token_file else "standard error, which shows the token,"
        raise usage_error(f"{what} is a file that the agent can read: {kept}")


def _serve_http(offer: "Offer", address: str, tokens: list[str], hosts: tuple[str, ...], made: list[str]) -> None:
    from handrail.surfaces.mcp.http import BadAddress, serve_http  # noqa: PLC0415  loads the SDK
    from handrail.surfaces.mcp.server import build  # noqa: PLC0415  loads the SDK

    try:
        serve_http(build(offer), offer.limits, address, tokens + made, hosts, shown="".join(made))
    except BadAddress as error:
        raise usage_error(str(error)) from None


def _new_token() -> str:
    from secrets import token_urlsafe  # noqa: PLC0415  needed for HTTP only

    return token_urlsafe(32)


def _tokens(path: str) -> list[str]:
    tokens = [line.strip() for line in read_text(path).split("\n") if line.strip()]
    if not tokens:
        raise usage_error(f"no token found in {path}")
    if any(len(token) < SHORTEST_TOKEN for token in tokens):
        raise usage_error(f"a token in {path} is shorter than {SHORTEST_TOKEN} characters")
    return tokens
