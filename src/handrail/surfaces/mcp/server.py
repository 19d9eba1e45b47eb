"""Implements the MCP server: lists the tools of one dialect and calls them, in old and new protocol revisions."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, PaginatedRequestParams

import handrail
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
from handrail.surfaces.mcp.mcp_results import to_mcp
from handrail.surfaces.mcp.prompts import add_prompts
from handrail.surfaces.mcp.resources import add_resources
from handrail.surfaces.mcp.sealed_state import Forged, Sealer, StateRefused, digest
from handrail.surfaces.mcp.sessions import CALLER, MARK, Client, Clients
from handrail.tools.tool import ToolResult


def build(offer: Offer) -> "Server[Any]":
    """Return a server for the offered tools."""
    handlers = Handlers(offer)
    server: Server[Any] = Server(
        "handrail",
        version=handrail.__version__,
        title="Handrail",
        instructions=offer.instructions(),
        lifespan=lambda _: Clients(offer).open(),
        get_tool_input_schema=handlers.schema,
    )
    if not offer.telemetry:
        server.middleware.clear()  # remove the telemetry of the SDK
    server.add_request_handler("tools/list", PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, handlers.call_tool)
    add_resources(server, offer)
    add_prompts(server, offer)
    return server


class Handlers:
    """Answers the requests of clients."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._listed = offer.listed()
        self._sealer = Sealer(offer.limits.question_seconds)

    def schema(self, name: str) -> dict[str, Any] | None:
        """Return the input schema of a listed tool."""
        return next((form["inputSchema"] for form in self._listed if form["name"] == name), None)

    async def list_tools(self, _context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
        return {"tools": self._listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> dict[str, Any]:
        """Call a tool and return its result, or the question that the client must answer first."""
        client: Client = context.lifespan_context.of(context)
        given = params.arguments or {}
        try:
            workspace, arguments = self._offer.place(given)
            ask = self._ask(context, client, params)
        except Fault as fault:
            return to_mcp(client.any_router().refuse(params.name, fault, given))
        router = client.router(workspace)
        tool, cancel = router.real_name(params.name), threading.Event()

        mark = _mark_of(context)

        def work() -> ToolResult:
            asking.set(ask)
            if self._offer.telemetry:
                from handrail.runtime.spans import span_of_surface  # noqa: PLC0415  off by default

                span_of_surface.set(True)
            if mark:
                client.set_mark(workspace, mark)
            return router.call(tool, arguments, call_id=str(context.request_id), cancel=cancel)

        def stop() -> None:
            cancel.set()
            if isinstance(ask, Dialogue):
                ask.stop()

        result = await _run_in_worker(client, work, stop, context.session.report_progress)
        question = ask.unanswered() if isinstance(ask, Rounds) else None
        return question or to_mcp(result)

    def _ask(self, context: Any, client: Client, params: CallToolRequestParams) -> Ask:
        """Return the function that asks for approval: only the calling client, on the connection of the call."""
        if context.request is not None and not context.request.scope.get(CALLER):
            return refuse_without_token
        able = context.session.client_capabilities
        forms = able.elicitation if able else None
        if forms is None or (forms.form is None and forms.url is not None):
            return refuse_without_elicitation
        if context.session.can_send_request:
            return Dialogue(context, self._offer.limits)
        call = digest(client.name, params.name, params.arguments or {})
        try:
            return Rounds(self._sealer, self._offer.limits, call, params.request_state, params.input_responses or {})
        except StateRefused as reason:
            denied = Denied(params.name, str(reason), "Call again without the state to get a new question")
            if not isinstance(reason, Forged):
                raise denied from None
            client.any_router().refuse(params.name, denied, params.arguments)  # writes the refusal into the session log
            raise MCPError(INVALID_PARAMS, f"{reason}; {denied.remedy}") from None


def _mark_of(context: Any) -> str:
    """Return the mark that a client wants to have set before a call; empty if it wants none."""
    name = (context.meta or {}).get(MARK, "")
    try:
        return checked_name(name) if name else ""
    except (UndoError, AttributeError):
        raise MCPError(INVALID_PARAMS, f"{MARK} must be a name on one line") from None


async def _run_in_worker(
    client: Client, work: Callable[[], ToolResult], stop: Callable[[], None], report: Callable[..., Awaitable[None]]
) -> ToolResult:
    """Run a call in a worker thread; if the request is cancelled, stop the call and wait for its end."""
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(client.workers, copy_context().run, work)  # the span of the request is in the context
    reports = Reports(loop, report)
    client.running += 1
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([done])
        raise
    finally:
        client.running -= 1
        reports.end()


class Reports:
    """Reports the progress of a call every second, starting after one second."""

    def __init__(self, loop: asyncio.AbstractEventLoop, report: Callable[..., Awaitable[None]]) -> None:
        self._report = report
        self._task: asyncio.Task[None] | None = None
        self._timer = loop.call_later(1, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        for seconds in itertools.count(1):
            await self._report(seconds, message=f"Running for {seconds} s")
            await asyncio.sleep(1)

    def end(self) -> None:
        """Stop the reports."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
