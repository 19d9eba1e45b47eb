"""Serves MCP with the official SDK: over HTTP, and in memory for tests. The answers are those of `answers.py`."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp.types as t
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from handrail.surfaces.mcp.answers import Answers
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.mcp_protocol import CALL, SERVER, Json, ProtocolError, progress_text
from handrail.surfaces.mcp.mcp_requests import Answer, ClientError, ClientRequest, Reply, Send
from handrail.surfaces.mcp.sdk_clients import CALLER, Clients, SdkClient

if TYPE_CHECKING:
    from concurrent.futures import Future

_PARAMS: dict[str, type[t.RequestParams]] = {
    CALL: t.CallToolRequestParams,
    "resources/read": t.ReadResourceRequestParams,
    "prompts/get": t.GetPromptRequestParams,
}
"""What the SDK checks the parameters of a method with; the other methods are listings."""


def build(offer: Offer) -> "Server[Any]":
    """Return a server for the offered tools."""
    answers = Answers(offer)
    server: Server[Any] = Server(
        SERVER["name"],
        version=SERVER["version"],
        title=SERVER["title"],
        instructions=answers.instructions,
        lifespan=lambda _: Clients(offer).open(),
        get_tool_input_schema=answers.schema,
    )
    if not offer.telemetry:
        server.middleware.clear()  # remove the telemetry of the SDK
    for method, answer in answers.methods.items():
        handler = partial(_handle, answer, method, quick=method in answers.quick)
        server.add_request_handler(method, _PARAMS.get(method, t.PaginatedRequestParams), handler)
    return server


async def _handle(answer: Answer, method: str, context: Any, _params: Any, *, quick: bool) -> Json:
    """Answer one request; what may wait runs in a thread."""
    client: SdkClient = context.lifespan_context.of(context)
    request = _request_of(context, client)
    try:
        if quick:
            return answer(request)
        if method != CALL:
            return await to_thread.run_sync(answer, request)
        return await _run_in_worker(client, request, partial(answer, request), context.session.report_progress)
    except ProtocolError as error:
        raise MCPError(error.code, error.message) from None


def _request_of(context: Any, client: SdkClient) -> ClientRequest:
    able = context.session.client_capabilities
    over_http = context.request is not None
    return ClientRequest(
        context.request_id,
        context.params or {},
        client,
        able.model_dump(by_alias=True, exclude_none=True) if able else {},
        _sender(context) if context.session.can_send_request else None,
        shared=over_http,
        trusted=not over_http or bool(context.request.scope.get(CALLER)),
    )


def _sender(context: Any) -> Send:
    """Return what sends a question to the client from a worker thread."""
    loop = asyncio.get_running_loop()

    async def deliver(asked: Json, reply: Reply) -> None:
        try:
            answer = await context.session.elicit_form(asked["message"], asked["requestedSchema"], context.request_id)
        except MCPError as error:
            reply.fail(ClientError(str(error)))
        except ValidationError:
            reply.deliver({})  # an answer that is none
        else:
            reply.deliver(answer.model_dump())

    def send(asked: Json, reply: Reply) -> Callable[[], None]:
        sent = asyncio.run_coroutine_threadsafe(deliver(asked, reply), loop)
        return partial(_cancel, sent)

    return send


def _cancel(sent: "Future[None]") -> None:
    sent.cancel()


async def _run_in_worker(
    client: SdkClient, request: ClientRequest, work: Callable[[], Json], report: Callable[..., Awaitable[None]]
) -> Json:
    """Run a call in a worker thread; if the request is cancelled, stop the call and wait for its end."""
    loop = asyncio.get_running_loop()
    done = loop.run_in_executor(client.workers, copy_context().run, work)  # the span of the request is in the context
    reports = Reports(loop, report)
    client.running += 1
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        request.stop()
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
            await self._report(seconds, message=progress_text(seconds))
            await asyncio.sleep(1)

    def end(self) -> None:
        """Stop the reports."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
