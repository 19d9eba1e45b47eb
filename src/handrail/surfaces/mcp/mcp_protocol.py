"""Holds the facts of the protocol that every part of the MCP server needs: revisions, codes, reserved names."""

from typing import Any

import handrail

Json = dict[str, Any]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that begin with `initialize`, the newest last."""
STATELESS_VERSIONS = ("2026-07-28",)
"""The revisions in which every request carries its own facts about the client, the newest last."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION, CONNECTION_CLOSED = -32022, -32000

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

SERVER = {"name": "handrail", "title": "Handrail", "version": handrail.__version__}
CALL = "tools/call"
"""The only method that may run for long, ask the user and report progress."""
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""Fields of a listing: the client asks again each time. Only stateless revisions know them."""


class ProtocolError(Exception):
    """Says that a request is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


def progress_text(seconds: int) -> str:
    """Return what a report says about a call that still runs."""
    return f"Running for {seconds} s"
