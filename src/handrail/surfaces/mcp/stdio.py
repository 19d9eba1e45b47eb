"""Serves MCP on standard input and output, one message per line, with threads and without the SDK.

One thread reads and never writes: if a client stops reading, its cancellations and answers still arrive. Work that
waits for nothing has threads of its own, so calls that wait for the user do not hold it up.
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from handrail.kernel.host.line_channel import LineChannel
from handrail.surfaces.mcp.answers import Answers
from handrail.surfaces.mcp.mcp_protocol import INVALID_REQUEST, PARSE_ERROR, Json
from handrail.surfaces.mcp.pipe_conversation import PipeConversation, Spanned, Work, error_message, is_message
from handrail.surfaces.mcp.sessions import PIPE, Client

if TYPE_CHECKING:
    from handrail.surfaces.mcp.catalogue import Offer

_QUICK_THREADS = 4
"""The threads for work that waits for nothing but the disk."""
_MESSAGE_COST = 1 << 10
"""What a waiting message takes in memory besides its text."""
_LAST_WORDS_SECONDS = 1.0
"""How long a client has to read the last answers when the server ends."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = json.JSONDecoder()


def serve_stdio(offer: "Offer", begun: Callable[[], None] | None = None) -> None:
    """Serve until the client closes its end or a signal stops the server.

    `begun` is called in a thread of its own when a client has begun to work: one that only looks starts nothing.
    """
    pipe = Pipe(offer, LineChannel(offer.limits.message_bytes), begun)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: pipe.end())
    pipe.serve()


class Wire(Protocol):
    """Carries lines to and from a client."""

    def lines(self) -> Iterator[bytes | None]:
        """Yield each line that comes; None for a line that is too long."""

    def write(self, line: bytes) -> None:
        """Write a whole line. Raises BrokenPipeError if the reader is gone."""


class _Unreadable(Exception):  # noqa: N818  becomes an answer
    """A line that is not a message: the code of the error and the id of the request, if it has one."""

    def __init__(self, code: int, why: str, number: Any = None) -> None:
        super().__init__(why)
        self.code, self.number = code, number


class Pipe:
    """Reads messages, has threads work on them, and ends everything when the client or a signal ends the connection."""

    def __init__(self, offer: "Offer", wire: Wire, begun: Callable[[], None] | None = None) -> None:
        self._limit, self._wire, self._begun = offer.limits.message_bytes, wire, begun
        self._ends: SimpleQueue[None] = SimpleQueue()
        self._client = Client(offer, PIPE)
        self._conversation = PipeConversation(Answers(offer), self._client, self._send, _spanned(offer))
        self._waiting = Waiting(self._limit)
        self._quick, self._slow = Threads(_QUICK_THREADS), Threads(offer.limits.client_calls)

    def end(self) -> None:
        """End the server; a handler of a signal may call this."""
        self._ends.put(None)

    def serve(self) -> None:
        """Serve until the client closes its end, no longer reads, or `end()` is called."""
        start_thread(self._read)
        self._ends.get()
        self._conversation.close()
        self._client.close()
        self._waiting.until_none(_LAST_WORDS_SECONDS)

    def _read(self) -> None:
        for line in self._wire.lines():
            try:
                work = self._conversation.receive(self._message(line)) if line is None or line.strip() else None
            except _Unreadable as found:
                work = Work(partial(self._refuse, found))
            if self._begun is not None and self._conversation.begun:
                start_thread(self._begun)
                self._begun = None
            if work is not None:
                self._start(work, len(line or b""))
        self.end()

    def _start(self, work: Work, size: int) -> None:
        self._waiting.add(size + _MESSAGE_COST)

        def run() -> None:
            try:
                work.run()
            finally:
                self._waiting.remove(size + _MESSAGE_COST)

        (self._slow if work.slow else self._quick).put(run)

    def _message(self, line: bytes | None) -> Json:
        """Return the message in a line. Raises _Unreadable."""
        if line is None:
            raise _Unreadable(INVALID_REQUEST, f"The message is longer than {self._limit} bytes")
        try:
            found = _DECODER.decode(line.decode())
        except (ValueError, RecursionError) as error:
            raise _Unreadable(PARSE_ERROR, f"The line is not valid JSON: {error}") from None
        if not is_message(found) or not _is_text(line, found):
            number = found.get("id") if isinstance(found, dict) else None
            known = number if isinstance(number, int | str) else None
            raise _Unreadable(INVALID_REQUEST, "The line is not a JSON-RPC message", known)
        message: Json = found
        return message

    def _refuse(self, found: _Unreadable) -> None:
        sys.stderr.write(f"handrail: {found}\n")
        self._send(error_message(found.number, found.code, str(found)))

    def _send(self, message: Json) -> None:
        try:
            self._wire.write(_ENCODER.encode(message).encode())
        except BrokenPipeError:  # the client no longer reads
            self.end()


def _spanned(offer: "Offer") -> Spanned | None:
    if not offer.telemetry:
        return None
    from handrail.surfaces.mcp.pipe_spans import message_span  # noqa: PLC0415  off by default

    return message_span


def _is_text(line: bytes, found: Any) -> bool:
    """Return False if a message has half of a surrogate pair, which no answer could repeat."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return True
    try:
        _ENCODER.encode(found).encode()
    except UnicodeEncodeError:
        return False
    return True


class Waiting:
    """Counts the bytes of messages that wait for a thread; stops the reader when there are too many."""

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._changed = threading.Condition()

    def add(self, size: int) -> None:
        """Wait until there is room for a message, then count it. A message that waits alone always has room."""
        with self._changed:
            while self._held and self._held + size > self._most:
                self._changed.wait()
            self._held += size

    def remove(self, size: int) -> None:
        with self._changed:
            self._held -= size
            self._changed.notify_all()

    def until_none(self, seconds: float) -> None:
        """Wait until no message waits, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, seconds)


class Threads:
    """Runs jobs in at most so many threads, which start when they are needed."""

    def __init__(self, most: int) -> None:
        self._room = most
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._free = threading.Semaphore(0)
        self._started = 0

    def put(self, job: Callable[[], None]) -> None:
        """Run a job, in the order in which jobs came. Only one thread calls this."""
        self._jobs.put(job)
        if not self._free.acquire(blocking=False) and self._started < self._room:
            self._started += 1
            start_thread(self._run)

    def _run(self) -> None:
        while True:
            self._jobs.get()()
            self._free.release()


def start_thread(work: Callable[[], None]) -> None:
    """Start a daemon thread: a client that neither sends nor reads must not delay the end of the process."""
    threading.Thread(target=work, daemon=True).start()
