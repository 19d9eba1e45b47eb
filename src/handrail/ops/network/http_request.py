"""Reads the head and the body of one HTTP/1 request strictly, so that no two programs read it in two ways.

A proxy that reads a request in another way than the server behind it can be made to pass on a second request that it
never checked. So everything that servers are known to read differently is an error here. Pure functions.
"""

import re
from typing import NamedTuple

from handrail.ops.network.host_patterns import Site, parse_authority

END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([A-Z][A-Z-]{0,31}) ([\x21-\x7e]+) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_ABSOLUTE = re.compile(r"http://([^/?#\\@]+)([/?][^#]*)?", re.IGNORECASE)
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}\r\n")
_LONGEST_LENGTH = 18
_OWN = frozenset(
    {b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"upgrade", b"te"}
)
"""Headers for the next hop only. The proxy writes the first two itself; without an upgrade, HTTP stays HTTP."""
_CHUNK_LINE = 32


class Request(NamedTuple):
    """Holds the head of one request."""

    method: str
    target: str
    minor: int
    """The minor version: 0 or 1."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Names in lower case, and values."""

    def values(self, name: bytes) -> list[bytes]:
        return [value for each, value in self.headers if each == name]


def parse_head(head: bytes) -> Request:
    """Return the request with this head, which ends with an empty line. Raises ValueError with the reason."""
    first, *lines = head.removesuffix(END).split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise ValueError("a request line that is not HTTP/1")
    headers = [_HEADER.fullmatch(line) for line in lines]
    if None in headers:
        raise ValueError("a header that servers read in different ways")
    pairs = tuple((each[1].lower(), each[2].rstrip(b" \t")) for each in headers if each is not None)
    return Request(found[1].decode(), found[2].decode(), int(found[3]), pairs)


def requested_site(request: Request, tunnel: Site | None) -> tuple[Site, str]:
    """Return the site and the path that a request is for. `tunnel` is the site of the tunnel that it came through.

    Raises ValueError if the request names no site, or two different ones.
    """
    absolute = _ABSOLUTE.fullmatch(request.target)
    site, path = (parse_authority(absolute[1], 80), absolute[2] or "/") if absolute else (tunnel, request.target)
    if site is None:
        raise ValueError("a request target without a host that is a name or an address")
    if not absolute and not path.startswith("/") and (path, request.method) != ("*", "OPTIONS"):
        raise ValueError("a request target that is no path and no http URL")
    hosts = request.values(b"host")
    if len(hosts) > 1 or (not hosts and (request.minor or not absolute)):
        raise ValueError("a request without exactly one Host header")
    usual = 443 if tunnel is not None and tunnel.port == 443 else 80
    named = {site, tunnel or site, *(parse_authority(each.decode("latin-1"), usual) for each in hosts)}
    if len(named) != 1:
        raise ValueError("a request whose Host header names another host than its target")
    return site, path if path.startswith(("/", "*")) else f"/{path}"


def passed_on(request: Request, site: Site, path: str) -> bytes:
    """Return the head as the server receives it: for one path on one host, and for one request only."""
    host = str(site) if site.port != 443 else f"{site}:443"
    kept = [name + b": " + value for name, value in request.headers if name not in _OWN]
    first = f"{request.method} {path} HTTP/1.{request.minor}\r\nHost: {host}\r\nConnection: close".encode()
    return b"\r\n".join((first, *kept)) + END


class Body:
    """Finds the end of the body of one request. Raises ValueError for a body whose end is not certain."""

    def __init__(self, request: Request) -> None:
        lengths, codings = request.values(b"content-length"), request.values(b"transfer-encoding")
        self._chunked = bool(codings)
        self._left, self._line, self._ends = 0, b"", False
        """Bytes of the present chunk, of the line behind it, and whether that line is only an end of line."""
        if codings and ([each.lower() for each in codings] != [b"chunked"] or lengths or not request.minor):
            raise ValueError("a body whose length servers read in different ways")
        if len(lengths) > 1 or not all(each.isdigit() and len(each) <= _LONGEST_LENGTH for each in lengths):
            raise ValueError("a body whose length servers read in different ways")
        self._left = int(lengths[0]) if lengths else 0
        self.complete = not self._left and not self._chunked
        self._last = False

    def feed(self, data: bytes) -> int:
        """Return how many of these bytes belong to the body."""
        at = 0
        while at < len(data) and not self.complete:
            step = min(self._left, len(data) - at) or 1
            if self._left:
                self._left -= step
                self.complete = not self._left and not self._chunked
            else:
                self._line += data[at : at + 1]
                self._check_line()
            at += step
        return at

    def _check_line(self) -> None:
        """Judge the bytes between two chunks: the end of a chunk, then the size of the next one."""
        line = self._line
        if self._ends:
            if line != b"\r\n"[: len(line)]:
                raise ValueError("a chunk of another length than it says, or trailers behind the last one")
            if len(line) == 2:
                self._line, self._ends, self.complete = b"", False, self._last
        elif line.endswith(b"\n"):
            if not _CHUNK_SIZE.fullmatch(line):
                raise ValueError("a chunk whose size servers read in different ways")
            self._left, self._line, self._ends = int(line, 16), b"", True
            self._last = not self._left
        elif len(line) >= _CHUNK_LINE:
            raise ValueError("a chunk with an overlong size")
