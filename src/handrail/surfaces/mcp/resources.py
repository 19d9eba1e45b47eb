"""Offers MCP resources: the jobs of the client that asks, the history of each workspace, and the diff of an entry."""

import json

from handrail.errors import UndoError
from handrail.model.effects import Effect
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.mcp_protocol import FRESH, INVALID_PARAMS, Json, ProtocolError
from handrail.surfaces.mcp.mcp_requests import Answer, ClientRequest
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


class Resources:
    """Lists and reads the resources of a server; offers the list of jobs only if one of its tools runs commands."""

    def __init__(self, offer: Offer) -> None:
        runs = any(Effect.RUN in tool.effects for tool in offer.tools.values())
        self._offer, self._names = offer, [*([JOBS] if runs else []), HISTORY]
        self._template = f"{HISTORY}/{{workspace}}/{{entry}}" if len(offer.workspaces) > 1 else f"{HISTORY}/{{entry}}"
        self.methods: dict[str, Answer] = {
            "resources/list": self._list,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
        }

    def _list(self, _request: ClientRequest) -> Json:
        return {"resources": [_LISTED[name] for name in self._names], **FRESH}

    def _list_templates(self, _request: ClientRequest) -> Json:
        entry = {
            "uriTemplate": self._template,
            "name": "entry",
            "title": "Changes of one entry",
            "description": "The diff of one entry of the history.",
            "mimeType": _DIFF,
        }
        return {"resourceTemplates": [entry], **FRESH}

    def _read(self, request: ClientRequest) -> Json:
        """Return the content of a resource."""
        uri: str = request.params["uri"]
        if uri == JOBS and JOBS in self._names:
            kind, text = _JSON, _jobs(request.client)
        elif uri == HISTORY:
            kind, text = _JSON, self._history(request.client, request.shared)
        else:
            kind, text = _DIFF, self._diff(uri)
        return {"contents": [{"uri": uri, "mimeType": kind, "text": text}], **FRESH}

    def _history(self, client: Client, shared: bool) -> str:
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
            raise ProtocolError(INVALID_PARAMS, f"unknown resource; the server has {known}")
        try:
            return self._offer.workspaces[name].history().diff(int(number[:_DIGITS]))
        except UndoError as error:
            raise ProtocolError(INVALID_PARAMS, error.message) from None


_DIGITS = 18
"""More digits than any number of an entry has."""


def _jobs(client: Client) -> str:
    found = [
        {"workspace": name, **job._asdict()} for name, session in client.sessions.items() for job in session.jobs()
    ]
    return json.dumps({"jobs": found})
