"""The server on standard input and output: one line, one message. What cannot be read is answered, and said."""

import json
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread, to_thread
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR
from mcp.types.jsonrpc import jsonrpc_message_adapter

from handrail.kernel.stdio import Wire
from handrail.surfaces.mcp.server import build

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.server.lowlevel import Server

    from handrail.surfaces.mcp.offer import Offer


def serve(offer: "Offer") -> None:
    """Until the client closes its end, or a signal says to stop."""
    anyio.run(talk, build(offer), offer.limits.message_bytes)


async def talk(server: "Server[Any]", limit: int) -> None:
    wire = Wire(limit)
    inward, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outward = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        tasks.start_soon(partial(to_thread.run_sync, _read, wire, limit, inward, abandon_on_cancel=True))
        tasks.start_soon(_write, wire, outward, tasks.cancel_scope)
        await server.run(messages, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


def _read(wire: Wire, limit: int, inward: "MemoryObjectSendStream[SessionMessage | Exception]") -> None:
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
                    from_thread.run(inward.send, SessionMessage(message))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the server has stopped
    finally:
        from_thread.run_sync(inward.close)


def _why(line: bytes) -> tuple[int, str, Any]:
    """Why a line is not a message, and whose it was if that can be told."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return PARSE_ERROR, f"The line is not valid JSON: {error}", None
    known = found.get("id") if isinstance(found, dict) else None
    return INVALID_REQUEST, "The line is not a JSON-RPC message", known if isinstance(known, int | str) else None


def _refuse(wire: Wire, code: int, why: str, request_id: Any) -> None:
    sys.stderr.write(f"handrail: {why}\n")
    error = {"code": code, "message": why}
    wire.write(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode())


async def _write(wire: Wire, outward: "MemoryObjectReceiveStream[SessionMessage]", scope: anyio.CancelScope) -> None:
    try:
        async for answer in outward:
            line = answer.message.model_dump_json(by_alias=True, exclude_unset=True)
            await to_thread.run_sync(wire.write, line.encode(), abandon_on_cancel=True)
    except BrokenPipeError:
        scope.cancel()
