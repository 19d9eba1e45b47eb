"""Offers one MCP prompt: the user lets the model take back changes, or learns how to do it."""

import shlex
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, GetPromptRequestParams, PaginatedRequestParams

from handrail.ops.text.display import one_line
from handrail.surfaces.mcp.catalogue import Offer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_UNDO = "undo"
_LISTED = {
    "name": _UNDO,
    "title": "Undo",
    "description": "Take back the last change, one entry of the history, or everything since a mark.",
    "arguments": [
        {"name": "entry", "description": "The number of an entry of the history.", "required": False},
        {"name": "to", "description": "A mark: take back everything since then.", "required": False},
    ],
}
_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_SHOWN = 10


def add_prompts(server: "Server[Any]", offer: Offer) -> None:
    """Add the prompt to a server, unless its workspaces are for reading only."""
    if all(each.settings.read_only for each in offer.workspaces.values()):
        return

    async def read(_context: Any, params: GetPromptRequestParams) -> dict[str, Any]:
        if params.name != _UNDO:
            raise MCPError(INVALID_PARAMS, f"unknown prompt; the server has only {_UNDO}")
        given = {name: one_line(value) for name, value in (params.arguments or {}).items() if value}
        text = _with_tools(given) if _UNDO in offer.tools else await to_thread.run_sync(_by_hand, offer, given)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": _LISTED["description"], "messages": [message], "resultType": "complete"}

    server.add_request_handler("prompts/list", PaginatedRequestParams, _list)
    server.add_request_handler("prompts/get", GetPromptRequestParams, read)


async def _list(_context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
    return {"prompts": [_LISTED], **_FRESH}


def _with_tools(given: dict[str, str]) -> str:
    return f"Take back {_what(given)}: call the tool `undo`. Then tell me which files changed."


def _by_hand(offer: Offer, given: dict[str, str]) -> str:
    """Return a text with the last changes and the command that takes them back."""
    lines = [f"I want to take back {_what(given)}. No tool can do that here; show me these commands and entries:", ""]
    for workspace in offer.workspaces.values():
        words = ["handrail", "undo", *_options(given), "--root", workspace.root]
        lines.append(f"    {shlex.join(words)}")
        for entry in workspace.history().shown(_SHOWN):
            names = ", ".join(file["path"] for file in entry["files"][:3])
            said = one_line(f"{entry['n']}: {entry['tool'] or entry['kind']} {entry.get('mark', '')}{names}")
            lines.append(f"    {said}{' (undone)' if entry['undone'] else ''}")
    return "\n".join(lines)


def _what(given: dict[str, str]) -> str:
    if "entry" in given:
        return f"entry {given['entry']} of the history"
    return f"everything since the mark {given['to']}" if "to" in given else "your last change"


def _options(given: dict[str, str]) -> list[str]:
    return [given["entry"]] if "entry" in given else ["--to", given["to"]] if "to" in given else []
