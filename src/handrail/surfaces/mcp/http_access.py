"""Checks every HTTP request before the server sees it: host, origin, token, size and time."""

import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken

from handrail.surfaces.mcp.sdk_clients import CALLER
from handrail.surfaces.request_bodies import Bodies, GivenUp, TooLong

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from handrail.model.limits import Limits

Refusal = tuple[int, str]
_ONCE = {"host", "origin", "authorization"}
"""Headers that decide about access; a request may have each of them only once."""
_IPV6 = r"\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._~-]+)?)\]"
_AUTHORITY = re.compile(rf"(?:{_IPV6}|([A-Za-z0-9._-]+))(?::[0-9]{{0,5}})?")


class HttpAccess:
    """Rejects requests from unknown hosts, origins and callers, and bodies that are too long or too slow."""

    def __init__(self, app: "ASGIApp", tokens: Sequence[str], hosts: Sequence[str], limits: "Limits") -> None:
        self._app, self._limits, self._bodies = app, limits, Bodies(limits)
        self._tokens = [hashlib.sha256(token.encode()).digest() for token in tokens]
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        caller, refusal = self._check(headers)
        if len([name for name, _ in scope["headers"] if name.decode("latin-1") in _ONCE]) > len(_ONCE & headers.keys()):
            refusal = (400, "A header was sent more than once")
        body = b""
        if refusal is None:
            body, refusal = await self._body(receive, headers)
        if refusal is not None:
            await _send_error(send, *refusal)
            return
        if caller:  # the SDK accepts a session only from the credential that opened it
            scope["user"] = AuthenticatedUser(AccessToken(token=caller, client_id=caller, scopes=[]))
        scope[CALLER] = caller
        await self._app(scope, _after(body, receive), send)

    def _check(self, headers: dict[str, str]) -> tuple[str, Refusal | None]:
        """Return the caller that the token names, and why the request is refused, if it is."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._host_is_ours(host):
            return "", (421, f"This server does not answer as {host!r}")
        if origin is not None and not self._origin_is_ours(origin):
            return "", (403, f"Requests from the origin {origin!r} are not accepted")
        if not self._tokens:
            return "", None
        kind, _, token = headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(token.strip().encode("latin-1")).digest()
        known = [
            hmac.compare_digest(given, each) for each in self._tokens
        ]  # compare all tokens, so that the time does not depend on the position
        if kind.lower() != "bearer" or not any(known):
            return "", (401, "A valid bearer token is required")
        return f"token-{known.index(True) + 1}", None

    def _host_is_ours(self, header: str) -> bool:
        """Accept addresses and known names; the owner of another name could rebind it to this address."""
        name = _name(header)
        return name is not None and (name == "localhost" or _address(name) is not None or name in self._hosts)

    def _origin_is_ours(self, header: str) -> bool:
        scheme, _, authority = header.partition("://")
        name = _name(authority) if scheme else None
        address = _address(name or "")
        loopback = name == "localhost" or (address is not None and address.is_loopback)
        return loopback or name in self._hosts

    async def _body(self, receive: "Receive", headers: dict[str, str]) -> tuple[bytes, Refusal | None]:
        limits = self._limits
        try:
            return await self._bodies.read(receive, headers.get("content-length", "0")), None
        except TooLong:
            return b"", (413, f"The message is longer than {limits.message_bytes} bytes")
        except GivenUp:
            why = f"within {limits.request_seconds:g} seconds, or other requests displaced it"
            return b"", (408, f"The message did not arrive {why}")


def _after(body: bytes, receive: "Receive") -> "Receive":
    """Return a receive function that first returns the body that was read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> "Message":
        return waiting.pop() if waiting else await receive()

    return replay


def _name(authority: str) -> str | None:
    """Return the name or address in HOST or HOST:PORT; None for other forms, such as USER@HOST or [::1].HOST."""
    found = _AUTHORITY.fullmatch(authority)
    return (found[1] or found[2]).lower() if found else None


def _address(name: str) -> Any:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


async def _send_error(send: "Send", status: int, why: str) -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": why}}
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})


def is_loopback(host: str) -> bool:
    """Return True for localhost and loopback addresses."""
    address = _address(host)
    return host == "localhost" or (address is not None and bool(address.is_loopback))
