"""Serves MCP on standard input and output, one message per line; answers and logs lines that cannot be read."""

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from mcp.types.jsonrpc import jsonrpc_message_adapter

from handrail.kernel.host.line_channel import LineChannel

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server

    from handrail.model.limits import Limits


def serve_stdio(server: "Server[Any]", limits: "Limits") -> None:
    """Serve until the client closes its end or a signal stops the server."""
    anyio.run(_serve, server, limits.message_bytes)


async def _serve(server: "Server[Any]", limit: int) -> None:
    wire = LineChannel(limit)
    inward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        tasks.start_soon(_write, wire, outward, tasks.cancel_scope)
        _start_thread(_read, wire, limit, inward, asyncio.get_running_loop())
        await server.run(messages, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _start_thread(work: Callable[..., None], *arguments: Any) -> None:
    """Start a daemon thread: a client that neither sends nor reads must not delay the end of the process."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


def _read(
    wire: LineChannel,
    limit: int,
    inward: "MemoryObjectSendStream[SessionMessage | Exception]",
    loop: asyncio.AbstractEventLoop,
) -> None:
    try:
        for line in wire.lines():
            if line is None:
                _refuse(wire, INVALID_REQUEST, f"The message is longer than {limit} bytes", None)
            elif line.strip():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    _refuse(wire, *_why(line))
                else:
                    asyncio.run_coroutine_threadsafe(inward.send(SessionMessage(message)), loop).result()
        loop.call_soon_threadsafe(inward.close)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, CancelledError, BrokenPipeError, RuntimeError):
        return  # the server and its event loop have stopped


def _why(line: bytes) -> tuple[int, str, Any]:
    """Return the error code, the reason and the request id of a line that is not a message."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return PARSE_ERROR, f"The line is not valid JSON: {error}", None
    known = found.get("id") if isinstance(found, dict) else None
    return INVALID_REQUEST, "The line is not a JSON-RPC message", known if isinstance(known, int | str) else None


def _refuse(wire: LineChannel, code: int, why: str, request_id: Any) -> None:
    sys.stderr.write(f"handrail: {why}\n")
    error = {"code": code, "message": why}
    wire.write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode())


async def _write(
    wire: LineChannel, outward: "MemoryObjectReceiveStream[SessionMessage]", scope: anyio.CancelScope
) -> None:
    loop, lines = asyncio.get_running_loop(), SimpleQueue[tuple[bytes, asyncio.Future[bool]]]()
    _start_thread(_drain, wire, lines, loop)
    async for answer in outward:
        written: asyncio.Future[bool] = loop.create_future()
        lines.put((answer.message.model_dump_json(by_alias=True, exclude_unset=True).encode(), written))
        if not await written:
            scope.cancel()  # the client no longer reads


def _drain(
    wire: LineChannel, lines: "SimpleQueue[tuple[bytes, asyncio.Future[bool]]]", loop: asyncio.AbstractEventLoop
) -> None:
    while True:
        line, written = lines.get()
        try:
            wire.write(line)
            delivered = True
        except BrokenPipeError:
            delivered = False
        try:
            loop.call_soon_threadsafe(_settle, written, delivered)
        except RuntimeError:
            return  # the event loop has stopped


def _settle(written: "asyncio.Future[bool]", delivered: bool) -> None:
    if not written.cancelled():
        written.set_result(delivered)
