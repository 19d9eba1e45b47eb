"""Offers one MCP prompt: the user lets the model take back changes, or learns how to do it."""

import shlex

from handrail.ops.text.display import one_line
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.mcp_protocol import FRESH, INVALID_PARAMS, Json, ProtocolError
from handrail.surfaces.mcp.mcp_requests import Answer, ClientRequest

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
_SHOWN = 10


class Prompts:
    """Lists the prompt and fills it in; offers nothing if all workspaces are for reading only."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self.methods: dict[str, Answer] = {}
        if not all(each.settings.read_only for each in offer.workspaces.values()):
            self.methods = {"prompts/list": self._list, "prompts/get": self._get}

    def _list(self, _request: ClientRequest) -> Json:
        return {"prompts": [_LISTED], **FRESH}

    def _get(self, request: ClientRequest) -> Json:
        if request.params["name"] != _UNDO:
            raise ProtocolError(INVALID_PARAMS, f"unknown prompt; the server has only {_UNDO}")
        arguments = request.params.get("arguments") or {}
        given = {name: one_line(value) for name, value in arguments.items() if value}
        text = _with_tools(given) if _UNDO in self._offer.tools else _by_hand(self._offer, given)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": _LISTED["description"], "messages": [message], "resultType": "complete"}


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
