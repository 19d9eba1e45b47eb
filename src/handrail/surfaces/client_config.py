"""The MCP clients that `handrail config` knows: where each keeps its servers, and in which form."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handrail.dialects import load
from handrail.kernel.host.client_files import application_data, home, own_command
from handrail.settings import parse_toml
from handrail.tools.exports import api_name

NAME = "handrail"


class Unmergeable(Exception):  # noqa: N818  a message for the person whose file it is
    pass


@dataclass(frozen=True, slots=True)
class ClientKind:
    """`file` is told the workspace's root: some clients keep a file in each project (`in_project`)."""

    title: str
    dialect: str
    file: Callable[[str], str]
    in_project: bool = True
    key: str = "mcpServers"
    typed: bool = False
    """Whether the entry must say that it is a stdio server."""
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
    spoken = dialect or client.dialect
    program, *first = own_command()
    dotted = any(name != api_name(name) for name in load(spoken).tools)
    names = ["--safe-names"] if dotted else []
    made = {"command": program, "args": [*first, "mcp", "--root", root, "--dialect", spoken, *names, *extra]}
    return {"type": "stdio", **made} if client.typed else made


def snippet(client: ClientKind, made: dict[str, Any]) -> str:
    """The configuration with our server alone."""
    return merged(client, "", made)


def merged(client: ClientKind, old: str, made: dict[str, Any]) -> str:
    """The client's configuration with our server in it; all else as it was."""
    return _merged_toml(client.key, old, made) if client.toml else _merged_json(client.key, old, made)


def entry_in(client: ClientKind, text: str) -> Any:
    """Our server as a configuration that can be merged has it already; None if it has not."""
    settings = (parse_toml(text) if client.toml else json.loads(text)) if text.strip() else {}
    return settings.get(client.key, {}).get(NAME)


def _merged_json(key: str, old: str, made: dict[str, Any]) -> str:
    try:
        settings = json.loads(old) if old.strip() else {}
    except RecursionError:
        raise Unmergeable("it is nested too deeply; add the entry by hand") from None
    except ValueError as error:
        raise Unmergeable(f"it is not plain JSON ({error}); add the entry by hand") from None
    if not isinstance(settings, dict) or not isinstance(settings.get(key, {}), dict):
        raise Unmergeable(f"it is not an object with {key}; add the entry by hand")
    servers = {**settings.get(key, {}), NAME: made}
    return json.dumps({**settings, key: servers}, indent=2, ensure_ascii=False) + "\n"


def _merged_toml(key: str, old: str, made: dict[str, Any]) -> str:
    """Text, so that comments and order stay; checked against what it means."""
    try:
        before = parse_toml(old)
    except ValueError as error:
        raise Unmergeable(f"it is not valid TOML ({error}); add the entry by hand") from None
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
        raise Unmergeable(f"it has {key} in a form that cannot be added to safely; add the entry by hand")
    return text


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return parse_toml(text)
    except ValueError:
        return None


def _with_entry(settings: dict[str, Any], key: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**settings, key: {**settings.get(key, {}), NAME: made}}
