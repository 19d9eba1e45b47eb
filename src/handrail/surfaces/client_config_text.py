"""Makes the text of a client configuration with the Handrail server in it, for the clients of `handrail config`."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from handrail.dialects import load
from handrail.kernel.host.client_files import application_data, home, own_command
from handrail.settings import parse_toml
from handrail.tools.exports import api_name

NAME = "handrail"


class Unmergeable(Exception):  # noqa: N818  its text is a message for the user
    """The configuration of a client cannot be edited automatically."""


class ClientKind(NamedTuple):
    """Describes one MCP client."""

    title: str
    dialect: str
    file: Callable[[str], str]
    """Returns the path of the configuration file, given the root of the workspace."""
    in_project: bool = True
    """True if the client keeps a file in each project."""
    key: str = "mcpServers"
    typed: bool = False
    """True if the entry must name its type, `stdio`."""
    toml: bool = False


CLIENTS = {
    "claude-code": ClientKind("Claude Code", "claude-code", lambda root: f"{root}/.mcp.json", typed=True),
    "claude-desktop": ClientKind(
        "Claude Desktop",
        "claude-code",
        lambda _: f"{application_data()}/Claude/claude_desktop_config.json",
        in_project=False,
    ),
    "cursor": ClientKind("Cursor", "copilot", lambda root: f"{root}/.cursor/mcp.json"),
    "vscode": ClientKind("VS Code", "copilot", lambda root: f"{root}/.vscode/mcp.json", key="servers", typed=True),
    "gemini-cli": ClientKind("Gemini CLI", "gemini-3", lambda root: f"{root}/.gemini/settings.json"),
    "codex": ClientKind(
        "Codex", "codex-2026", lambda _: f"{home()}/.codex/config.toml", in_project=False, key="mcp_servers", toml=True
    ),
}


def entry(client: ClientKind, root: str, dialect: str | None, extra: list[str]) -> dict[str, Any]:
    """Return the configuration entry that starts our MCP server for a workspace."""
    dialect_name = dialect or client.dialect
    program, *first = own_command()
    dotted = any(name != api_name(name) for name in load(dialect_name).tools)
    names = ["--safe-names"] if dotted else []
    made = {"command": program, "args": [*first, "mcp", "--root", root, "--dialect", dialect_name, *names, *extra]}
    return {"type": "stdio", **made} if client.typed else made


def snippet(client: ClientKind, made: dict[str, Any]) -> str:
    """Return a configuration with our server alone."""
    return merged(client, "", made)


def merged(client: ClientKind, old: str, made: dict[str, Any]) -> str:
    """Return the configuration of a client with our server set and everything else unchanged. Raises Unmergeable."""
    return _merged_toml(client.key, old, made) if client.toml else _merged_json(client.key, old, made)


def entry_in(client: ClientKind, text: str) -> Any:
    """Return the entry of our server in a configuration; None if there is none."""
    settings = (parse_toml(text) if client.toml else json.loads(text)) if text.strip() else {}
    return settings.get(client.key, {}).get(NAME)


def _merged_json(key: str, old: str, made: dict[str, Any]) -> str:
    try:
        settings = json.loads(old) if old.strip() else {}
    except RecursionError:
        raise Unmergeable("the file is nested too deeply; add the entry by hand") from None
    except ValueError as error:
        raise Unmergeable(f"the file is not plain JSON ({error}); add the entry by hand") from None
    if not isinstance(settings, dict) or not isinstance(settings.get(key, {}), dict):
        raise Unmergeable(f"the file is not an object with {key}; add the entry by hand")
    servers = {**settings.get(key, {}), NAME: made}
    return json.dumps({**settings, key: servers}, indent=2, ensure_ascii=False) + "\n"


def _merged_toml(key: str, old: str, made: dict[str, Any]) -> str:
    """Set our server in the TOML text of a client; check that the result holds exactly that change."""
    from handrail.ops.toml_edit import set_table  # noqa: PLC0415  only one client has a TOML file

    try:
        before = parse_toml(old)
    except ValueError as error:
        raise Unmergeable(f"it is not valid TOML ({error}); add the entry by hand") from None
    servers = before.get(key, {})
    try:
        if isinstance(servers, dict):
            text = set_table(old, key, NAME, made)
            if parse_toml(text) == {**before, key: {**servers, NAME: made}}:
                return text
    except ValueError:
        pass  # refused below
    raise Unmergeable(f"it has {key} in a form that cannot be edited automatically; add the entry by hand")
