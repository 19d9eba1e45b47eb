"""Offers MCP resources: the jobs of the client that asks, the history of each workspace, and the diff of an entry."""

import json
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, ReadResourceRequestParams

from handrail.errors import UndoError
from handrail.model.effects import Effect
from handrail.surfaces.mcp.catalogue import Offer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from handrail.surfaces.mcp.sessions import Client

JOBS, HISTORY = "handrail://jobs", "handrail://history"
_JSON, _DIFF = "application/json", "text/x-diff"
_LISTED = {
    JOBS: {
        "uri": JOBS,
        "name": "jobs",
        "title": "Jobs",
        "description": "The commands of this session that run in the background, and how the last ones ended.",
        "mimeType": _JSON,
    },
    HISTORY: {
        "uri": HISTORY,
        "name": "history",
        "title": "History",
        "description": "The recorded changes and marks of the workspace, the newest first.",
        "mimeType": _JSON,
    },
}
_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def add_resources(server: "Server[Any]", offer: Offer) -> None:
    """Add the resources to a server; the list of jobs only if one of its tools runs commands."""
    resources = Resources(offer)
    server.add_request_handler("resources/list", PaginatedRequestParams, resources.list)
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, resources.list_templates)
    server.add_request_handler("resources/read", ReadResourceRequestParams, resources.read)


class Resources:
    """Lists and reads the resources of a server."""

    def __init__(self, offer: Offer) -> None:
        runs = any(Effect.RUN in tool.effects for tool in offer.tools.values())
        self._offer, self._names = offer, [*([JOBS] if runs else []), HISTORY]
        self._template = f"{HISTORY}/{{workspace}}/{{entry}}" if len(offer.workspaces) > 1 else f"{HISTORY}/{{entry}}"

    async def list(self, _context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
        return {"resources": [_LISTED[name] for name in self._names], **_FRESH}

    async def list_templates(self, _context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
        entry = {
            "uriTemplate": self._template,
            "name": "entry",
            "title": "Changes of one entry",
            "description": "The diff of one entry of the history.",
            "mimeType": _DIFF,
        }
        return {"resourceTemplates": [entry], **_FRESH}

    async def read(self, context: Any, params: ReadResourceRequestParams) -> dict[str, Any]:
        """Return the content of a resource. Other threads may hold the lists, so a thread reads them."""
        client, uri = context.lifespan_context.of(context), str(params.uri)
        shared = context.request is not None  # over HTTP other clients work in the same workspaces
        if uri == JOBS and JOBS in self._names:
            kind, text = _JSON, await to_thread.run_sync(_jobs, client)
        elif uri == HISTORY:
            kind, text = _JSON, await to_thread.run_sync(self._history, client, shared)
        else:
            kind, text = _DIFF, await to_thread.run_sync(self._diff, uri)
        return {"contents": [{"uri": uri, "mimeType": kind, "text": text}], **_FRESH}

    def _history(self, client: "Client", shared: bool) -> str:
        listed = []
        for name, workspace in self._offer.workspaces.items():
            session = client.sessions.get(name)
            own = (session.id if session else "") if shared else None
            listed += [{"workspace": name, **each} for each in workspace.history().shown(commands_of=own)]
        return json.dumps({"entries": listed})

    def _diff(self, uri: str) -> str:
        *named, number = uri.removeprefix(f"{HISTORY}/").split("/")
        name = named[0] if named else next(iter(self._offer.workspaces))
        fits = len(named) == (len(self._offer.workspaces) > 1) and name in self._offer.workspaces
        if not (uri.startswith(f"{HISTORY}/") and fits and number.isascii() and number.isdigit()):
            known = ", ".join([*self._names, self._template])
            raise MCPError(INVALID_PARAMS, f"unknown resource; the server has {known}")
        try:
            return self._offer.workspaces[name].history().diff(int(number[:_DIGITS]))
        except UndoError as error:
            raise MCPError(INVALID_PARAMS, error.message) from None


_DIGITS = 18
"""More digits than any number of an entry has."""


def _jobs(client: "Client") -> str:
    found = [
        {"workspace": name, **job._asdict()} for name, session in client.sessions.items() for job in session.jobs()
    ]
    return json.dumps({"jobs": found})
