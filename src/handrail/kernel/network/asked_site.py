"""Reads which site a client of the proxy asks for, by HTTP CONNECT, a plain HTTP request, or SOCKS5, and answers."""

import socket
from typing import NamedTuple

from handrail.kernel.network.client_stream import ClientStream
from handrail.kernel.network.refusals import STATUS, Refused, says
from handrail.model.limits import Limits
from handrail.ops.network.host_patterns import Site, canonical_host, parse_authority
from handrail.ops.network.http_request import END, Request, parse_head, requested_site

_SOCKS5, _NO_PASSWORD, _CONNECT = 5, 0, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_SOCKS_SUCCESS, _SOCKS_FAILURE, _SOCKS_NOT_ALLOWED, _SOCKS_UNREACHABLE, _SOCKS_NO_COMMAND = 0, 1, 2, 4, 7
_CONNECTED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class AskedSite(NamedTuple):
    """Holds the site that a client asks for, and how it asked."""

    via: str
    site: Site
    request: Request | None = None
    """The request itself, if the client sends a plain HTTP request and no tunnel."""
    path: str = ""


def read_asked(stream: ClientStream, limits: Limits) -> AskedSite:
    """Read what a client asks for. Raises Refused."""
    while not stream.held:
        stream.fill()
    if stream.held[0] == _SOCKS5:
        return _read_socks(stream)
    head = stream.through(END, limits.network_header_bytes)
    try:
        request = parse_head(head)
        if request.method == "CONNECT":
            return _read_connect(request)
        site, path = requested_site(request, None)
    except ValueError as error:
        raise Refused("malformed", str(error)) from None
    return AskedSite("http", site, request, path)


def _read_connect(request: Request) -> AskedSite:
    site = parse_authority(request.target, None)
    if site is None:
        raise Refused("host", "CONNECT needs HOST:PORT")
    if request.values(b"content-length") or request.values(b"transfer-encoding"):
        raise ValueError("a CONNECT with a body")
    return AskedSite("connect", site)


def _read_socks(stream: ClientStream) -> AskedSite:
    methods = stream.exactly(2)[1]
    if _NO_PASSWORD not in stream.exactly(methods):
        stream.sock.sendall(bytes([_SOCKS5, 0xFF]))
        raise Refused("malformed", "SOCKS5 with a password")
    stream.sock.sendall(bytes([_SOCKS5, _NO_PASSWORD]))
    _, command, _, kind = stream.exactly(4)
    if command != _CONNECT:
        answer_socks(stream.sock, _SOCKS_NO_COMMAND)
        raise Refused("malformed", "a SOCKS5 command other than CONNECT")
    host, port = _socks_host(stream, kind), int.from_bytes(stream.exactly(2), "big")
    if host is None or not port:
        answer_socks(stream.sock, _SOCKS_FAILURE)
        raise Refused("host", "SOCKS5")
    return AskedSite("socks5", Site(host, port))


def _socks_host(stream: ClientStream, kind: int) -> str | None:
    if kind == _IPV4:
        return socket.inet_ntop(socket.AF_INET, stream.exactly(4))
    if kind == _IPV6:
        return canonical_host(socket.inet_ntop(socket.AF_INET6, stream.exactly(16)))
    if kind != _NAME:
        return None
    name = stream.exactly(stream.exactly(1)[0])
    return canonical_host(name.decode("ascii")) if name.isascii() and b"[" not in name else None


def answer_socks(sock: socket.socket, code: int) -> None:
    sock.sendall(bytes([_SOCKS5, code, 0, _IPV4, 0, 0, 0, 0, 0, 0]))


def answer_connected(stream: ClientStream, asked: AskedSite) -> None:
    """Tell the client that its tunnel is open; a plain request gets its answer from the server."""
    if asked.via == "socks5":
        answer_socks(stream.sock, _SOCKS_SUCCESS)
    elif asked.via == "connect":
        stream.sock.sendall(_CONNECTED)


def answer_refused(stream: ClientStream, asked: AskedSite | None, refused: Refused) -> None:
    """Tell the client why it is refused, before its tunnel is open."""
    status = STATUS[refused.why]
    if asked is not None and asked.via == "socks5":
        answer_socks(stream.sock, _SOCKS_NOT_ALLOWED if status == 403 else _SOCKS_UNREACHABLE)
        return
    if asked is None and stream.held[:1] == bytes([_SOCKS5]):
        return
    stream.sock.sendall(refusal_page(refused, asked.site if asked else None))


def refusal_page(refused: Refused, site: Site | None) -> bytes:
    """Return the HTTP answer to a request that is refused. Its first line says why, which most programs print."""
    sentence = says(refused.why, refused.detail, site)
    body = f"handrail: {sentence}\n".encode()
    head = f"HTTP/1.1 {STATUS[refused.why]} {sentence}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    return head.encode() + b"Content-Length: %d" % len(body) + END + body
