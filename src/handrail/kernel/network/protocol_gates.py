"""Checks what passes through a connection: TLS only to the server that was asked for, HTTP only one request."""

import re

from handrail.kernel.network.client_stream import ClientStream
from handrail.kernel.network.refusals import Refused
from handrail.model.limits import Limits
from handrail.ops.network.addresses import literal
from handrail.ops.network.client_hello import HANDSHAKE, ClientHello, asks_for_retry, read_hello, skip_records
from handrail.ops.network.host_patterns import Site
from handrail.ops.network.http_request import END, Body, Request, parse_head, passed_on, requested_site

_METHOD = re.compile(rb"[A-Z-]{1,32} ")
_PERHAPS_METHOD = re.compile(rb"[A-Z-]{0,32}")
_ANSWER = 64
"""The first bytes of a server's answer that are looked at."""


class OpenGate:
    """Lets everything pass: for a protocol that only the user knows, at a port that the user named."""

    held = 0
    """The bytes that wait for a decision."""
    finished = False
    """True if the client sent more than may pass: nothing more is read from it."""

    def from_client(self, data: bytes) -> bytes:
        """Return the bytes that may be sent to the server now. Raises Refused."""
        return data

    def from_server(self, data: bytes) -> None:
        """Look at what the server sends."""


class ServerNameGate(OpenGate):
    """Lets TLS pass if the ClientHello names the site, and the second one, too, if the server asks for one."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._waiting, self._answer, self._again, self._open = b"", b"", False, False
        self._needed = 0
        """The bytes that the second message needs before it is looked at again."""

    @property
    def held(self) -> int:  # type: ignore[override]  # a number here, too
        """The bytes that wait for the server's answer or for the rest of a message."""
        return len(self._waiting)

    def first(self, stream: ClientStream) -> bytes:
        """Read and check the first message; return it."""
        while isinstance(hello := self._hello(stream.held), int):
            while len(stream.held) < hello:
                stream.fill()
        self._check(hello)
        return stream.exactly(hello.size)

    def from_client(self, data: bytes) -> bytes:
        if self._open and not self._waiting:
            return data
        self._waiting += data
        if self._again and len(self._waiting) >= self._needed:
            self._check_again()
        if not self._open:
            return b""
        passed, self._waiting = self._waiting, b""
        return passed

    def from_server(self, data: bytes) -> None:
        if self._open or self._again:
            return
        self._answer += data[:_ANSWER]
        retry = asks_for_retry(self._answer)
        self._open, self._again = retry is False, retry is True

    def _check_again(self) -> None:
        """Check the second message, which follows early data and a marker that the server ignores."""
        try:
            at = skip_records(self._waiting)
        except ValueError as error:
            raise Refused("server_name", str(error)) from None
        if at is None:
            return
        hello = self._hello(self._waiting[at:])
        if isinstance(hello, int):
            self._needed = at + hello
        else:
            self._check(hello)
            self._open = True

    @staticmethod
    def _hello(data: bytes) -> ClientHello | int:
        try:
            return read_hello(data)
        except ValueError as error:
            raise Refused("server_name", str(error)) from None

    def _check(self, hello: ClientHello) -> None:
        if hello.encrypted:
            raise Refused("server_name", "it is encrypted")
        if hello.name is None and literal(self._site.host):
            return  # a client that connects to an address names no server
        if hello.name != self._site.host:
            raise Refused("server_name", f"it is {hello.name!r}" if hello.name else "there is none")


class OneRequestGate(OpenGate):
    """Lets one HTTP request pass, with its body. What follows needs a connection, and a check, of its own."""

    def __init__(self, request: Request) -> None:
        try:
            self._body = Body(request)
        except ValueError as error:
            raise Refused("malformed", str(error)) from None

    def from_client(self, data: bytes) -> bytes:
        try:
            passing = self._body.feed(data)
        except ValueError as error:
            raise Refused("malformed", str(error)) from None
        self.finished = self.finished or passing < len(data)
        return data[:passing]


def tunnel_gate(stream: ClientStream, site: Site, limits: Limits, *, anything: bool) -> tuple[OpenGate, bytes]:
    """Recognise what a client speaks in a tunnel; return its gate and the first bytes for the server. Raises Refused.

    `anything` says that the user named the port of the site, so that other protocols than TLS and HTTP may pass.
    """
    while not stream.held or (_PERHAPS_METHOD.fullmatch(stream.held) and len(stream.held) <= 32):
        stream.fill()
    if stream.held[0] == HANDSHAKE:
        gate = ServerNameGate(site)
        return gate, gate.first(stream)
    if _METHOD.match(stream.held):
        request, head = _tunnelled_request(stream, site, limits)
        return OneRequestGate(request), head
    if not anything:
        raise Refused("protocol", "write the port into the setting to allow others")
    return OpenGate(), b""


def _tunnelled_request(stream: ClientStream, site: Site, limits: Limits) -> tuple[Request, bytes]:
    try:
        request = parse_head(stream.through(END, limits.network_header_bytes))
        return request, passed_on(request, *requested_site(request, site))
    except ValueError as error:
        raise Refused("malformed", str(error)) from None
