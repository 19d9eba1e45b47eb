"""Speaks the protocol with the client at the other end of a pipe, in the era that its first request chooses.

The module reads and makes messages; `stdio.py` moves them and has the threads. The results come from `answers.py`, as
those over HTTP do.
"""

import sys
import threading
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from handrail.surfaces.mcp.answers import Answers
from handrail.surfaces.mcp.mcp_protocol import (
    CALL,
    CAPABILITIES_KEY,
    CONNECTION_CLOSED,
    FRESH,
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER,
    SERVER_KEY,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Json,
    ProtocolError,
)
from handrail.surfaces.mcp.mcp_requests import ClientError, ClientRequest, Reply
from handrail.surfaces.mcp.pipe_progress import PipeProgress
from handrail.surfaces.mcp.request_shapes import ANSWER, HANDSHAKE_REQUESTS, STATELESS_REQUESTS, fits
from handrail.surfaces.mcp.sessions import Client

_WRONG_PARAMS = "Invalid request parameters"
_INITIALIZE, _PING, _DISCOVER = "initialize", "ping", "server/discover"
_OTHER_ERA = (
    "this connection serves the handshake protocol era; "
    "requests carrying the 2026-07-28 envelope are not accepted on it"
)
_NO_HANDSHAKE = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"
_NO_ENVELOPE = (
    f"params._meta must be an object carrying the required {VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope keys"
)
Id = int | str
Describe = Callable[[Json], None]
Spanned = Callable[[str, Json, str, Id | None], AbstractContextManager[Describe]]
"""Opens the span of a message, from its method, parameters, revision and id; yields what describes its result."""


class Work(NamedTuple):
    """Holds the work that a message asks for; `slow` work may wait, also for the user."""

    run: Callable[[], None]
    slow: bool = False


def is_message(found: Any) -> bool:
    """Return True if a JSON value is a message of JSON-RPC."""
    if not isinstance(found, dict) or found.get("jsonrpc") != "2.0":
        return False
    if isinstance(found.get("method"), str):
        return isinstance(found.get("params"), dict | None)
    if isinstance(found.get("result"), dict):
        return _is_id(found.get("id"))
    return fits(found.get("error"), {"code!": int, "message!": str}) and "id" in found


def error_message(number: Any, code: int, message: str, data: Any = None) -> Json:
    """Return the message that answers a request with an error."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": number, "error": error}


class PipeConversation:
    """Holds the state of a connection: its era, what the client can do, requests in work, and questions that wait."""

    def __init__(self, answers: Answers, client: Client, send: Callable[[Json], None], spanned: Spanned | None) -> None:
        self._offered = {*answers.methods, _PING, _DISCOVER}
        self._answers, self._client, self._send, self._spanned = answers, client, send, spanned
        self._stateless: bool | None = None
        self._version, self._ready, self._able = HANDSHAKE_VERSIONS[-1], False, Json()
        self._lock = threading.Lock()
        self._working: dict[Id, ClientRequest] = {}
        self._asked: dict[Id, Reply] = {}
        self._last_question = 0
        self._closed = False
        self.begun = False
        """True if a client has begun to work; one that only asks what the server offers has not."""
        self._progress = PipeProgress(send)

    def receive(self, message: Json) -> Work | None:
        """Take one message; return the work that it asks for, if any. Only one thread calls this."""
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if not isinstance(method, str):
            self._take_reply(message)
        elif not _is_id(number):
            self._take_notification(method, params)
        else:
            return self._begin(number, method, params)
        return None

    def close(self) -> None:
        """Stop the requests in work; they are answered with an error."""
        with self._lock:
            self._closed = True
            working = [*self._working.values()]
        for request in working:
            request.stop()

    def _begin(self, number: Id, method: str, params: Json) -> Work:
        if self._stateless is None:
            self._stateless = method != _INITIALIZE and _has_envelope(params)
        self.begun |= method == _INITIALIZE or (self._stateless and method not in (_DISCOVER, _PING))
        if method == _INITIALIZE and not self._stateless:  # decides what the next messages mean, so it cannot wait
            answer = self._answer(number, method, params, lambda: self._welcome(params))
            return Work(lambda: self._send(answer))
        request = self._request(number, params)
        with self._lock:
            self._working[_key(number)] = request
        result = partial(self._result_stateless if self._stateless else self._result, request, method)
        if not (self._stateless or self._ready or method == _PING):
            result = partial(self._result_too_early, method, params)
        return Work(lambda: self._work(request, method, result), slow=method == CALL)

    def _request(self, number: Id, params: Json) -> ClientRequest:
        if not self._stateless:
            return ClientRequest(number, params, self._client, self._able, self._ask)
        meta = params.get("_meta")
        able = meta.get(CAPABILITIES_KEY) if isinstance(meta, dict) else None
        return ClientRequest(number, params, self._client, able if isinstance(able, dict) else {}, None)

    def _work(self, request: ClientRequest, method: str, result: Callable[[], Json]) -> None:
        """Answer one request, unless the client has cancelled it."""
        with self._progress.of(request.params) if method == CALL else nullcontext():
            answer = self._answer(request.id, method, request.params, result)
        with self._lock:
            if self._working.get(_key(request.id)) is request:
                del self._working[_key(request.id)]
            closed = self._closed
        if not request.cancel.is_set():
            self._send(answer)
        elif closed:
            self._send(error_message(request.id, CONNECTION_CLOSED, "Connection closed"))

    def _answer(self, number: Id, method: str, params: Json, result: Callable[[], Json]) -> Json:
        try:
            with self._span(method, params, number) as describe:
                found = result()
                describe(found)
        except ProtocolError as error:
            return error_message(number, error.code, error.message, error.data)
        except Exception:  # noqa: BLE001  a bug must not end the connection
            sys.excepthook(*sys.exc_info())
            return error_message(number, INTERNAL_ERROR, "Internal server error")
        return {"jsonrpc": "2.0", "id": number, "result": found}

    def _span(self, method: str, params: Json, number: Id | None) -> AbstractContextManager[Describe]:
        if self._spanned is None:
            return nullcontext(_nothing)
        return self._spanned(method, params, STATELESS_VERSIONS[-1] if self._stateless else self._version, number)

    def _welcome(self, params: Json) -> Json:
        _check(HANDSHAKE_REQUESTS, (_INITIALIZE,), _INITIALIZE, params)
        asked = params["protocolVersion"]
        self._version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._able, self._ready = params["capabilities"], True
        return self._answers.welcome(self._version)

    def _result(self, request: ClientRequest, method: str) -> Json:
        """Return the result of a request in the era of handshakes."""
        if _has_envelope(request.params):
            raise ProtocolError(INVALID_REQUEST, _OTHER_ERA)
        _check(HANDSHAKE_REQUESTS, self._offered, method, request.params)
        if method == _PING:
            return {}
        result = self._answers.methods[method](request)
        return {name: value for name, value in result.items() if name not in FRESH}

    def _result_too_early(self, method: str, params: Json) -> Json:
        """Refuse a request that came before `initialize`."""
        if _has_envelope(params):
            raise ProtocolError(INVALID_REQUEST, _OTHER_ERA)
        _check(HANDSHAKE_REQUESTS, self._offered, method, params)
        raise ProtocolError(INVALID_PARAMS, _WRONG_PARAMS, "")

    def _result_stateless(self, request: ClientRequest, method: str) -> Json:
        """Return the result of a request that carries its own facts about the client."""
        _check_envelope(method, request.params)
        _check(STATELESS_REQUESTS, self._offered, method, request.params)
        result = self._answers.discovery() if method == _DISCOVER else self._answers.methods[method](request)
        return result | {"_meta": {**result.get("_meta", {}), SERVER_KEY: SERVER}}

    def _take_notification(self, method: str, params: Json) -> None:
        with self._span(method, params, None):
            if method == "notifications/cancelled":
                number = params.get("requestId")
                with self._lock:
                    request = self._working.get(_key(number)) if _is_id(number) else None
                if request is not None:
                    request.stop()
            elif method == "notifications/initialized" and isinstance(params.get("_meta"), dict | None):
                self._ready = True

    def _take_reply(self, message: Json) -> None:
        """Pass the reply to a question on; drop it if no question waits for it."""
        number = message.get("id")
        with self._lock:
            reply = self._asked.pop(_key(number), None) if _is_id(number) else None
        if reply is None:
            return
        if "result" in message:
            reply.deliver(message["result"] if fits(message["result"], ANSWER) else {})
        else:
            reply.fail(ClientError(message["error"]["message"]))

    def _ask(self, question: Json, reply: Reply) -> Callable[[], None]:
        """Send a question; return what takes it back."""
        with self._lock:
            self._last_question += 1
            number = self._last_question
            self._asked[number] = reply
        params = {"mode": "form", **question}
        self._send({"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params})

        def take_back() -> None:
            with self._lock:
                waited = self._asked.pop(number, None)
            if waited is not None:
                params = {"requestId": number, "reason": "the question is closed"}
                self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

        return take_back


def _nothing(_result: Json) -> None:
    """Describe nothing: there is no span."""


def _is_id(number: Any) -> TypeGuard[Id]:
    return isinstance(number, int | str) and not isinstance(number, bool)


def _key(number: Id) -> Id:
    """Return the same key for 7 and "7": some clients give numbers back as texts."""
    try:
        return int(number)
    except ValueError:
        return number


def _has_envelope(params: Json) -> bool:
    """Return True if a request carries its own revision, as only stateless revisions do."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def _check(shapes: dict[str, Json], offered: Container[str], method: str, params: Json) -> None:
    """Refuse a method that the era does not have, and parameters of the wrong shape."""
    if method not in shapes:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)
    if not fits(params, shapes[method]):
        raise ProtocolError(INVALID_PARAMS, _WRONG_PARAMS, "")
    if method not in offered:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)


def _check_envelope(method: str, params: Json) -> None:
    """Refuse a stateless request that does not say what it must."""
    if method == _INITIALIZE:
        asked = params.get("protocolVersion")
        data: Json = {"supported": [*STATELESS_VERSIONS]} | ({"requested": asked} if isinstance(asked, str) else {})
        raise ProtocolError(UNSUPPORTED_VERSION, _NO_HANDSHAKE, data)
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise ProtocolError(INVALID_PARAMS, _NO_ENVELOPE)
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]:
        lost = ", ".join(missing)
        raise ProtocolError(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {lost}")
    asked = meta[VERSION_KEY]
    if not isinstance(asked, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if asked not in STATELESS_VERSIONS:
        data = {"supported": [*STATELESS_VERSIONS], "requested": asked}
        raise ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
