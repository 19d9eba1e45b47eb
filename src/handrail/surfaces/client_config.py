"""Describes the MCP clients that `handrail config` knows: their configuration files and the form of an entry."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handrail.dialects import load
from handrail.kernel.host.client_files import application_data, home, own_command
from handrail.settings import parse_toml
from handrail.tools.exports import api_name

NAME = "handrail"


class Unmergeable(Exception):  # noqa: N818  its text is a message for the user
    """The configuration cannot be changed without a risk to its other contents."""


@dataclass(frozen=True, slots=True)
class ClientKind:
    """Describes one MCP client."""

    title: str
    dialect: str
    file: Callable[[str], str]
    """Returns the path of the configuration file for a workspace root."""
    in_project: bool = True
    """True if the client keeps its configuration file in each project."""
    key: str = "mcpServers"
    typed: bool = False
    """True if the entry must name the type `stdio`."""
    toml: bool = False


CLIENTS = {
    "claude-code": ClientKind("Claude Code", "copilot", lambda root: f"{root}/.mcp.json", typed=True),
    "claude-desktop": ClientKind(
        "Claude Desktop",
        "copilot",
        lambda _: f"{application_data()}/Claude/claude_desktop_config.json",
        in_project=False,
    ),
    "cursor": ClientKind("Cursor", "copilot", lambda root: f"{root}/.cursor/mcp.json"),
    "vscode": ClientKind("VS Code", "copilot", lambda root: f"{root}/.vscode/mcp.json", key="servers", typed=True),
    "gemini-cli": ClientKind("Gemini CLI", "gemini", lambda root: f"{root}/.gemini/settings.json"),
    "codex": ClientKind(
        "Codex", "codex", lambda _: f"{home()}/.codex/config.toml", in_project=False, key="mcp_servers", toml=True
    ),
}


def entry(client: ClientKind, root: str, dialect: str | None, extra: list[str]) -> dict[str, Any]:
    """Return the entry that starts the MCP server of a workspace."""
    spoken = dialect or client.dialect
    program, *first = own_command()
    dotted = any(name != api_name(name) for name in load(spoken).tools)
    names = ["--safe-names"] if dotted else []
    made = {"command": program, "args": [*first, "mcp", "--root", root, "--dialect", spoken, *names, *extra]}
    return {"type": "stdio", **made} if client.typed else made


def snippet(client: ClientKind, made: dict[str, Any]) -> str:
    """Return a configuration that holds only the Handrail server."""
    return merged(client, "", made)


def merged(client: ClientKind, old: str, made: dict[str, Any]) -> str:
    """Return the client's configuration with the Handrail server added or replaced; the rest stays unchanged."""
    return _merged_toml(client.key, old, made) if client.toml else _merged_json(client.key, old, made)


def entry_in(client: ClientKind, text: str) -> Any:
    """Return the Handrail entry of a valid configuration, or None."""
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
    """Edit the text, which keeps comments and order; check that the result parses to the expected settings."""
    try:
        before = parse_toml(old)
    except ValueError as error:
        raise Unmergeable(f"the file is not valid TOML ({error}); add the entry by hand") from None
    header = f"[{key}.{NAME}]"
    kept, inside = list[str](), False
    for line in old.split("\n"):
        if line.lstrip().startswith("["):
            inside = line.strip() == header
        if not inside:
            kept.append(line)
    body = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in made.items())
    rest = "\n".join(kept).rstrip("\n")
    text = (f"{rest}\n\n" if rest else "") + f"{header}\n{body}"
    if _parsed(text) != _with_entry(before, key, made):
        raise Unmergeable(f"the form of {key} in the file cannot be extended safely; add the entry by hand")
    return text


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml(text)
    except ValueError:
        return None


def _with_entry(settings: dict[str, Any], key: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**settings, key: {**settings.get(key, {}), NAME: made}}
