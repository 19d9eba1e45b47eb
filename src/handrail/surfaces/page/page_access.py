"""Decides who may talk to the page: checks every request before the page sees it, and sets the headers of every answer.

A browser sends cookies to every port of 127.0.0.1, also to a server that a command of the agent has started there. So
a cookie alone opens nothing: each request also needs the key that the exchange of the token returned, which the page
keeps for its own origin, port included.
"""

import hashlib
import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, NamedTuple

from handrail.surfaces.request_bodies import Bodies, GivenUp, TooLong

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from handrail.model.limits import Limits

KEY = "x-handrail-page"
"""The header with the key; no form and no request from another origin can send it."""
PROOF = "x-handrail-server"
"""The header with the proof."""
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), clipboard-read=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
_SECURITY = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_BODY_BYTES = 1 << 20
_SMALL_BYTES = 4096
_TOKENS = 64
"""The most addresses that wait to be opened."""
_SESSIONS = 64
_ONCE = ("host", "origin", "cookie", "sec-fetch-site", "content-length", KEY)


class Refusal(NamedTuple):
    """Says why a request is refused."""

    status: int
    why: str


_OTHER_SITE = Refusal(403, "requests from another site are not accepted")


class Entry(NamedTuple):
    """Holds what the exchange of a token gives: the cookie and the key, which are both needed, and the proof.

    The server sends the proof with every stream of events, and the page never sends it: a program that takes the port
    after the server has ended cannot speak for it.
    """

    cookie: str
    key: str
    proof: str


class PageDoor:
    """Makes tokens, exchanges each once, and knows who has entered. Nothing of it outlives the server."""

    def __init__(self, token_seconds: float) -> None:
        self._seconds = token_seconds
        self._tokens: dict[bytes, float] = {}
        self._entered: dict[bytes, bytes] = {}
        self.proof = secrets.token_urlsafe(32)

    def new_token(self) -> str:
        """Return a new token of 256 bits, which opens the page once."""
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = time.monotonic() + self._seconds
        for old in [*self._tokens][:-_TOKENS]:
            del self._tokens[old]
        return token

    def exchange(self, token: str) -> Entry | None:
        """Return cookie and key for a token that was not used yet; None for any other."""
        given, found = _digest(token), None
        for known in self._tokens:  # compare all, so that the time does not depend on the position
            if hmac.compare_digest(known, given):
                found = known
        if found is None or self._tokens.pop(found) < time.monotonic():
            return None
        entry = Entry(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self.proof)
        self._entered[_digest(entry.cookie)] = _digest(entry.key)
        for old in [*self._entered][:-_SESSIONS]:
            del self._entered[old]
        return entry

    def knows(self, cookie: str, key: str) -> bool:
        """Return whether cookie and key belong together and open the page."""
        expected = self._entered.get(_digest(cookie), b"")
        return hmac.compare_digest(expected, _digest(key))


class PageAccess:
    """Refuses every request that the page itself has not sent."""

    def __init__(self, app: "ASGIApp", door: PageDoor, port: int, limits: "Limits") -> None:
        self._app, self._door = app, door
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"handrail-{port}"
        bounds = limits._replace(message_bytes=_BODY_BYTES, http_bodies=64, http_bodies_bytes=8 * _BODY_BYTES)
        self._bodies = Bodies(bounds)
        self._small_bodies = Bodies(bounds._replace(message_bytes=_SMALL_BYTES))

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_SECURITY]}
            await send(message)

        refusal = self.why_refused(scope)
        body = b""
        if refusal is not None and scope["method"] != "GET":  # an unread body would reset the connection
            await self._body(self._small_bodies, scope, receive)
        elif refusal is None and scope["method"] == "POST":
            bodies = self._small_bodies if scope["path"] == "/api/enter" else self._bodies
            body, refusal = await self._body(bodies, scope, receive)
        if refusal is not None:
            await _refuse(secured, refusal)
            return
        await self._app(scope, _after(body, receive) if scope["method"] == "POST" else receive, secured)

    def why_refused(self, scope: "Scope") -> Refusal | None:
        """Return why a request is refused; None if it may pass."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            header = name.decode("latin-1")
            if header in headers and header in _ONCE:
                return Refusal(400, f"the header {header} was sent more than once")
            headers[header] = value.decode("latin-1")
        wrong = self._why_elsewhere(headers)
        if wrong is None and scope["path"].startswith("/api/"):
            return _why_not_ours(scope["method"], headers) or self._why_not_entered(scope["path"], headers)
        return wrong or _why_no_file(scope, headers)

    def _why_elsewhere(self, headers: dict[str, str]) -> Refusal | None:
        """Refuse other hosts, whose names could be rebound to this address, and other origins."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return Refusal(421, "this server does not answer as that host")
        if origin is not None and origin != f"http://{host}":
            return Refusal(403, "requests from another origin are not accepted")
        return None

    def _why_not_entered(self, path: str, headers: dict[str, str]) -> Refusal | None:
        cookie = _cookie(headers.get("cookie", ""), self.cookie)
        if path == "/api/enter" or self._door.knows(cookie, headers[KEY]):
            return None
        return Refusal(401, "open the address that `handrail page` prints")

    @staticmethod
    async def _body(bodies: Bodies, scope: "Scope", receive: "Receive") -> tuple[bytes, Refusal | None]:
        lengths = [value.decode("latin-1") for name, value in scope["headers"] if name == b"content-length"]
        try:
            return await bodies.read(receive, "".join(lengths) or "0"), None
        except TooLong:
            return b"", Refusal(413, "the body is too long")
        except GivenUp:
            return b"", Refusal(408, "the body did not arrive in time")


def _why_not_ours(method: str, headers: dict[str, str]) -> Refusal | None:
    """Refuse what the scripts of the page do not send."""
    checks = (
        (method in ("GET", "POST"), Refusal(405, "only GET and POST are accepted")),
        (headers.get("sec-fetch-site", "same-origin") == "same-origin", _OTHER_SITE),
        (KEY in headers, Refusal(403, f"the header {KEY} is missing")),
        (method == "GET" or "origin" in headers, Refusal(403, "the header origin is missing")),
        (method == "GET" or headers.get("content-type") == "application/json", Refusal(415, "the body must be JSON")),
    )
    return next((refusal for passed, refusal in checks if not passed), None)


def _why_no_file(scope: "Scope", headers: dict[str, str]) -> Refusal | None:
    """Refuse the files of the page to other sites; only a link to the page itself may be followed."""
    if scope["method"] != "GET":
        return Refusal(405, "only GET is accepted")
    navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    here = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    return None if here or (scope["path"] == "/" and navigates) else _OTHER_SITE


def _cookie(header: str, name: str) -> str:
    """Return the value of a cookie; empty if there is none."""
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _after(body: bytes, receive: "Receive") -> "Receive":
    """Return a receive function that first returns the body that was read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> "Message":
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(send: "Send", refusal: Refusal) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.why.encode()})
