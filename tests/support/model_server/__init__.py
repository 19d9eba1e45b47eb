"""Serves a scripted model on loopback in the forms of four APIs, for real clients that believe they talk to a model."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import MappingProxyType
from typing import Any, NamedTuple

from support.model_server import anthropic_messages, gemini_content, openai_chat, openai_responses
from support.model_server.script import Asked, Called, Cut, Model, Offered, Refuse, Say, Use, faulty, scripted

__all__ = ["Asked", "Called", "Cut", "ModelServer", "Offered", "Refuse", "Say", "Use", "faulty", "scripted", "serve"]

_APIS: tuple[tuple[str, Any], ...] = (
    ("/responses", openai_responses),
    ("/chat/completions", openai_chat),
    ("/messages", anthropic_messages),
    (":generateContent", gemini_content),
    (":streamGenerateContent", gemini_content),
)
_COUNTS = {"/count_tokens": {"input_tokens": 10}, ":countTokens": {"totalTokens": 10}}


class Sent(NamedTuple):
    """Holds what goes over the wire: events or one JSON value, whole or cut."""

    data: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    cut: Cut | None = None


class ModelServer:
    """Answers requests with a model; keeps the requests and the paths that it does not know."""

    def __init__(self, model: Model) -> None:
        self.model, self.port = model, 0
        self.asked: list[Asked] = []
        self.unknown: list[str] = []
        self.ended = Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: dict[str, Any], headers: Mapping[str, str]) -> Sent:
        """Return the answer to one request."""
        for end, count in _COUNTS.items():
            if path.endswith(end):
                return _sent(count)
        api = next((each for end, each in _APIS if path.endswith(end)), None)
        if api is None:
            self.unknown.append(path)
            return _sent({})
        if path.endswith(":streamGenerateContent"):
            body["stream"] = True
        asked: Asked = api.read(body)._replace(headers=headers)
        self.asked.append(asked)
        reply = self.model(asked)
        if isinstance(reply, Refuse):
            return Sent(reply.data, status=reply.status, headers=reply.headers)
        if isinstance(reply, Cut):
            sent = _sent(api.write(reply.reply, body))
            return sent._replace(data=_first_event(sent.data)) if reply.clean else sent._replace(cut=reply)
        return _sent(api.write(reply, body))


def _sent(answer: bytes | dict[str, Any]) -> Sent:
    return Sent(answer, "text/event-stream") if isinstance(answer, bytes) else Sent(json.dumps(answer).encode())


def _first_event(data: bytes) -> bytes:
    event, end, _ = data.partition(b"\n\n")
    return event + end


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self._body()
            body = json.loads(data) if data else {}
            self._send(server.answer(self.path.partition("?")[0], body, dict(self.headers.items())))

        def do_GET(self) -> None:
            self._send(_sent({"object": "list", "data": [], "models": []}))

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data

        def _send(self, sent: Sent) -> None:
            self.send_response(sent.status)
            fields = {"Content-Type": sent.kind, "Content-Length": str(len(sent.data)), **sent.headers}
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent.data[: len(sent.data) // 2] if sent.cut else sent.data)
            self.close_connection = sent.cut is not None
            if sent.cut and sent.cut.silent:
                server.ended.wait()

        def log_message(self, *_: object) -> None:
            """Print nothing: a client draws on the terminal."""

    return Handler


@contextmanager
def serve(model: Model, port: int = 0) -> Iterator[ModelServer]:
    """Start a server on loopback; end it on exit."""
    server = ModelServer(model)
    with ThreadingHTTPServer(("127.0.0.1", port), _handler(server)) as http:
        server.port = http.server_address[1]
        thread = Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ended.set()
            http.shutdown()
            thread.join()
