"""Declares the effects of tools. Risk level, permissions, approval and MCP hints all derive from these flags."""

from enum import Flag, auto


class Effect(Flag):
    """Lists what a tool may do: each tool declares its effects."""

    READ = auto()
    CREATE = auto()
    WRITE = auto()
    DELETE = auto()
    RUN = auto()
    FETCH = auto()


READ_ONLY, SAFE_WRITE, DANGEROUS = "read_only", "safe_write", "dangerous"

_PERMISSIONS = {
    Effect.READ: "ReadFiles",
    Effect.WRITE: "WriteFiles",
    Effect.CREATE: "CreateFiles",
    Effect.DELETE: "DeleteFiles",
    Effect.RUN: "RunCommands",
    Effect.FETCH: "FetchUrls",
}


def risk_level(effects: Effect) -> str:
    """Return the risk level of a tool with these effects: `read_only`, `safe_write` or `dangerous`."""
    if not needs_approval(effects):
        return READ_ONLY
    return SAFE_WRITE if effects in Effect.READ | Effect.CREATE else DANGEROUS


def permissions(effects: Effect) -> list[str]:
    """Return the names of the permissions that these effects need."""
    return [name for flag, name in _PERMISSIONS.items() if flag in effects]


def needs_approval(effects: Effect) -> bool:
    """Return whether the effects include anything but reading."""
    return effects not in Effect.READ


def mcp_hints(effects: Effect) -> dict[str, bool]:
    """Return the hints about a tool that an MCP client receives before it calls the tool."""
    return {
        "readOnlyHint": effects in Effect.READ | Effect.FETCH,
        "destructiveHint": bool(effects & (Effect.WRITE | Effect.DELETE | Effect.RUN)),
        "idempotentHint": not effects & (Effect.WRITE | Effect.RUN),
        "openWorldHint": bool(effects & (Effect.RUN | Effect.FETCH)),
    }
