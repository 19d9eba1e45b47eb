"""Serves MCP with the front of the pipe inside the process of a test: to the SDK's client, or to raw messages."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any

import anyio
from anyio import from_thread, to_thread
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import jsonrpc_message_adapter

from handrail.surfaces.mcp.answers import Answers
from handrail.surfaces.mcp.catalogue import Offer
from handrail.surfaces.mcp.pipe_conversation import PipeConversation
from handrail.surfaces.mcp.sessions import PIPE, Client
from handrail.surfaces.mcp.stdio import Pipe


class MemoryWire:
    """Carries lines between a client in an event loop and the threads of the server."""

    def __init__(self, answers: Any) -> None:
        self.incoming: SimpleQueue[bytes | None] = SimpleQueue()
        self._answers = answers
        self._token = anyio.lowlevel.current_token()

    def lines(self) -> Iterator[bytes]:
        while (line := self.incoming.get()) is not None:
            yield line

    def write(self, line: bytes) -> None:
        message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        try:
            from_thread.run_sync(self._answers.send_nowait, message, token=self._token)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError):
            raise BrokenPipeError from None


@asynccontextmanager
async def pipe_transport(offer: Offer) -> AsyncIterator[TransportStreams]:
    """Serve one client of the SDK; it is a transport for `mcp.Client`."""
    out, answers = anyio.create_memory_object_stream[SessionMessage | Exception](1000)
    messages, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    wire = MemoryWire(out)
    server = Thread(target=Pipe(offer, wire).serve, daemon=True)
    server.start()

    async def pass_on() -> None:
        async for each in incoming:
            wire.incoming.put(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_on)
        try:
            yield answers, messages
        finally:
            wire.incoming.put(None)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(server.join)
            for stream in (out, answers, messages, incoming):
                stream.close()
            tasks.cancel_scope.cancel()


def raw_answers(offer: Offer, messages: Iterable[Any]) -> list[Any]:
    """Return what the front sends for some messages, without threads: each is answered before the next is taken."""
    sent: list[Any] = []
    client = Client(offer, PIPE)
    conversation = PipeConversation(Answers(offer), client, sent.append, None)
    try:
        for message in messages:
            if work := conversation.receive(message):
                work.run()
    finally:
        client.close()
    return sent
