"""The MCP server: lists the tools of one dialect and calls them, in both eras of the protocol."""

import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, PaginatedRequestParams

import handrail
from handrail.faults import Denied, Fault
from handrail.surfaces.mcp.clients import Client, Clients
from handrail.surfaces.mcp.elicit import Ask, Rounds, ask_and_wait, ask_nobody, asking
from handrail.surfaces.mcp.offer import Offer
from handrail.surfaces.mcp.results import to_mcp
from handrail.surfaces.mcp.sealed import Refused, Sealer, digest
from handrail.tool import ToolResult


def build(offer: Offer) -> "Server[Any]":
    handlers = Handlers(offer)
    server: Server[Any] = Server(
        "handrail",
        version=handrail.__version__,
        title="Handrail",
        instructions=offer.instructions(),
        lifespan=lambda _: Clients(offer).open(),
        get_tool_input_schema=handlers.schema,
    )
    server.middleware.clear()  # telemetry that nobody asked for
    server.add_request_handler("tools/list", PaginatedRequestParams, handlers.list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, handlers.call_tool)
    return server


class Handlers:
    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._listed = offer.listed()
        self._sealer = Sealer(offer.limits.question_seconds)

    def schema(self, name: str) -> dict[str, Any] | None:
        return next((form["inputSchema"] for form in self._listed if form["name"] == name), None)

    async def list_tools(self, _context: Any, _params: PaginatedRequestParams) -> dict[str, Any]:
        return {"tools": self._listed, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> dict[str, Any]:
        client: Client = context.lifespan_context.of(context)
        given = params.arguments or {}
        try:
            workspace, arguments = self._offer.place(given)
            ask = self._ask(context, client, params)
        except Fault as fault:
            return to_mcp(client.any_router().refuse(params.name, fault, given))
        router = client.router(workspace)
        tool, cancel = router.real_name(params.name), threading.Event()

        def work() -> ToolResult:
            return router.call(tool, arguments, call_id=str(context.request_id), cancel=cancel)

        asking.set(ask)
        result = await _in_thread(work, client, cancel, context)
        question = ask.unanswered() if isinstance(ask, Rounds) else None
        return question or to_mcp(result)

    def _ask(self, context: Any, client: Client, params: CallToolRequestParams) -> Ask:
        """How this client is asked."""
        able = context.session.client_capabilities
        forms = able.elicitation if able else None
        if forms is None or (forms.form is None and forms.url is not None):
            return ask_nobody
        if context.session.can_send_request:
            return ask_and_wait(context)
        call = digest(client.name, params.name, params.arguments or {})
        try:
            return Rounds(self._sealer, call, params.request_state, params.input_responses or {})
        except Refused as reason:
            raise Denied(params.name, str(reason), "Call again without the state to be asked again") from None


async def _in_thread(
    work: Callable[[], ToolResult], client: Client, cancel: threading.Event, context: Any
) -> ToolResult:
    """Run a call beside the others. When the request is cancelled the call is told, and its end awaited."""

    async def watch() -> None:
        started = time.monotonic()
        try:
            while True:
                await anyio.sleep(1)
                seconds = round(time.monotonic() - started)
                await context.session.report_progress(seconds, message=f"Running for {seconds} s")
        finally:
            cancel.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        result = await to_thread.run_sync(work, limiter=client.limiter)
        tasks.cancel_scope.cancel()
    return result
