"""Offers one MCP resource: the jobs of the client that asks."""

import json
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, PaginatedRequestParams, ReadResourceRequestParams

from handrail.model.effects import Effect
from handrail.surfaces.mcp.catalogue import Offer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

URI = "handrail://jobs"
_KIND = "application/json"
_LISTED = {
    "uri": URI,
    "name": "jobs",
    "title": "Jobs",
    "description": "The commands of this session that run in the background, and how the last ones ended.",
    "mimeType": _KIND,
}
_FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def add_job_list(server: "Server[Any]", offer: Offer) -> None:
    """Add the resource to a server, if one of its tools runs commands."""
    if any(Effect.RUN in tool.effects for tool in offer.tools.values()):
        server.add_request_handler("resources/list", PaginatedRequestParams, _list)
        server.add_request_handler("resources/read", ReadResourceRequestParams, _read)


async def _list(_context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
    return {"resources": [_LISTED], **_FRESH}


async def _read(context: Any, params: ReadResourceRequestParams) -> dict[str, Any]:
    if params.uri != URI:
        raise MCPError(INVALID_PARAMS, f"unknown resource; the server has only {URI}")
    sessions = context.lifespan_context.of(context).sessions

    def jobs() -> list[dict[str, Any]]:
        return [{"workspace": name, **job._asdict()} for name, session in sessions.items() for job in session.jobs()]

    text = json.dumps({"jobs": await to_thread.run_sync(jobs)})  # a job that starts just now holds the list
    return {"contents": [{"uri": URI, "mimeType": _KIND, "text": text}], **_FRESH}
