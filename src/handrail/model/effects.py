"""What a tool may do to the world. Risk, permissions, approval and MCP hints are all derived from these flags."""

from enum import Flag, auto


class Effect(Flag):
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
    if not needs_approval(effects):
        return READ_ONLY
    return SAFE_WRITE if effects in Effect.READ | Effect.CREATE else DANGEROUS


def permissions(effects: Effect) -> list[str]:
    return [name for flag, name in _PERMISSIONS.items() if flag in effects]


def needs_approval(effects: Effect) -> bool:
    return effects not in Effect.READ


def mcp_hints(effects: Effect) -> dict[str, bool]:
    """What an MCP client is told about a tool before it is called."""
    return {
        "readOnlyHint": effects in Effect.READ | Effect.FETCH,
        "destructiveHint": bool(effects & (Effect.WRITE | Effect.DELETE | Effect.RUN)),
        "idempotentHint": not effects & (Effect.WRITE | Effect.RUN),
        "openWorldHint": bool(effects & (Effect.RUN | Effect.FETCH)),
    }
