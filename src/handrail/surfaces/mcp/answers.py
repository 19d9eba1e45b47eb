"""Answers the requests of MCP clients in plain JSON. Both fronts, over a pipe and over HTTP, use these answers."""

from typing import Any

from handrail.errors import UndoError
from handrail.model.faults import Denied, Fault
from handrail.runtime.undo_marks import checked_name
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.elicitation import (
    Ask,
    Dialogue,
    Rounds,
    asking,
    refuse_without_elicitation,
    refuse_without_token,
)
from handrail.surfaces.mcp.mcp_protocol import (
    CALL,
    FRESH,
    INVALID_PARAMS,
    SERVER,
    STATELESS_VERSIONS,
    Json,
    ProtocolError,
)
from handrail.surfaces.mcp.mcp_requests import Answer, ClientRequest
from handrail.surfaces.mcp.mcp_results import to_mcp
from handrail.surfaces.mcp.prompts import Prompts
from handrail.surfaces.mcp.resources import Resources
from handrail.surfaces.mcp.sealed_state import Forged, Sealer, StateRefused, digest

MARK = "handrail/mark"
"""The key in `_meta` of a call that names a mark, such as the turn of the user: it is set before the call."""


class Answers:
    """Answers the requests of all clients of a server."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._listed = offer.listed()
        self._sealer = Sealer(offer.limits.question_seconds)
        resources, prompts = Resources(offer), Prompts(offer)
        self.methods: dict[str, Answer] = {
            "tools/list": self._list_tools,
            CALL: self._call_tool,
            **resources.methods,
            **prompts.methods,
        }
        """What answers each method. Only the methods in `quick` answer without waiting for anything."""
        self.quick = frozenset(name for name in self.methods if name.endswith("/list"))

    @property
    def instructions(self) -> str:
        return self._offer.instructions()

    def capabilities(self) -> Json:
        """Return what the server offers, as both eras tell it to clients."""
        able: Json = {"tools": {"listChanged": False}, "resources": {"listChanged": False, "subscribe": False}}
        return able | ({"prompts": {"listChanged": False}} if "prompts/list" in self.methods else {})

    def welcome(self, version: str) -> Json:
        """Return the answer to `initialize`."""
        said = {"capabilities": self.capabilities(), "serverInfo": SERVER, "instructions": self.instructions}
        return {"protocolVersion": version, **said}

    def discovery(self) -> Json:
        """Return the answer to `server/discover`."""
        said = {"capabilities": self.capabilities(), "instructions": self.instructions}
        return {"supportedVersions": [*STATELESS_VERSIONS], **said, **FRESH}

    def schema(self, name: str) -> Json | None:
        """Return the input schema of a listed tool."""
        return next((form["inputSchema"] for form in self._listed if form["name"] == name), None)

    def _list_tools(self, _request: ClientRequest) -> Json:
        return {"tools": self._listed, **FRESH}

    def _call_tool(self, request: ClientRequest) -> Json:
        """Call a tool and return its result, or the question that the client must answer first."""
        client, name = request.client, request.params["name"]
        given = request.params.get("arguments") or {}
        try:
            workspace, arguments = self._offer.place(given)
            ask = self._ask(request)
        except Fault as fault:
            return to_mcp(client.any_router().refuse(name, fault, given))
        mark = _mark_of(request)
        router = client.router(workspace)
        asking.set(ask)
        if self._offer.telemetry:
            from handrail.runtime.spans import span_of_surface  # noqa: PLC0415  off by default

            span_of_surface.set(True)
        if mark:
            client.set_mark(workspace, mark)
        result = router.call(router.real_name(name), arguments, call_id=str(request.id), cancel=request.cancel)
        question = ask.unanswered() if isinstance(ask, Rounds) else None
        return question or to_mcp(result)

    def _ask(self, request: ClientRequest) -> Ask:
        """Return the function that asks for approval: only the calling client, on the connection of the call."""
        if not request.trusted:
            return refuse_without_token
        forms = request.able.get("elicitation")
        if forms is None or (forms.get("form") is None and forms.get("url") is not None):
            return refuse_without_elicitation
        if request.can_ask:
            return Dialogue(request, self._offer.limits)
        client, params = request.client, request.params
        name, given = params["name"], params.get("arguments") or {}
        state, responses = params.get("requestState"), params.get("inputResponses") or {}
        try:
            return Rounds(self._sealer, self._offer.limits, digest(client.name, name, given), state, responses)
        except StateRefused as reason:
            denied = Denied(name, str(reason), "Call again without the state to get a new question")
            if not isinstance(reason, Forged):
                raise denied from None
            client.any_router().refuse(name, denied, given)  # writes the refusal into the session log
            raise ProtocolError(INVALID_PARAMS, f"{reason}; {denied.remedy}") from None


def _mark_of(request: ClientRequest) -> str:
    """Return the mark that a client wants to have set before a call; empty if it wants none."""
    name: Any = request.meta.get(MARK, "")
    try:
        return checked_name(name) if name else ""
    except (UndoError, AttributeError):
        raise ProtocolError(INVALID_PARAMS, f"{MARK} must be a name on one line") from None
