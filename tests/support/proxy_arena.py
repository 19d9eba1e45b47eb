"""Starts a proxy in front of servers on loopback, with a resolver that knows the names of a test."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from handrail.kernel.network.allowed_sites import Destinations
from handrail.kernel.network.connection_log import ConnectionLog
from handrail.kernel.network.proxy import Proxy
from handrail.model.limits import Limits
from support.loopback_server import PLENTY, Site, page

if TYPE_CHECKING:
    from handrail.kernel.network.refusals import ConnectionRecord

CERTIFICATE = Path(__file__).parents[1] / "kernel" / "page.test.pem"


NAMES = {
    "page.test": ["127.0.0.1"],
    "other.test": ["127.0.0.1"],
    "sub.wild.test": ["127.0.0.1"],
    "xn--bcher-kva.test": ["127.0.0.1"],
    "rebound.wild.test": ["127.0.0.1"],
}
ANSWER = page(b"reached")


class Arena(ConnectionLog):
    """Holds the port of a proxy, the names that it looked up, and the records of the connections that have ended."""

    def __init__(self, port: int) -> None:
        super().__init__(0)
        self.port = port
        self._records: SimpleQueue[ConnectionRecord] = SimpleQueue()
        self.looked_up: list[str] = []

    def record(self) -> "ConnectionRecord":
        """Wait for the record of the next connection that ends."""
        return self._records.get(timeout=PLENTY)

    def ended(self, record: "ConnectionRecord") -> None:
        self._records.put(record)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PLENTY)

    def exchange(self, *parts: bytes) -> bytes:
        """Send the parts, each after an answer to the one before it; return everything that came back."""
        with self.connect() as sock:
            answer = b""
            for at, part in enumerate(parts):
                sock.sendall(part)
                if at < len(parts) - 1:
                    answer += sock.recv(65536)
            return answer + rest_of(sock)

    def status(self, *parts: bytes) -> int:
        """Return the HTTP status of the first answer; 0 if the proxy closed the connection without one."""
        answer = self.exchange(*parts)
        return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def rest_of(sock: socket.socket) -> bytes:
    """Return everything that comes until the other side closes or resets the connection."""
    answer = b""
    try:
        while data := sock.recv(65536):
            answer += data
    except ConnectionError:
        pass
    return answer


@contextmanager
def proxy_arena(
    *hosts: str, names: dict[str, list[str]] | None = None, private: tuple[str, ...] = (), limits: Limits | None = None
) -> Iterator[Arena]:
    """Run a proxy for these hosts. `names` are the answers of the resolver, `private` is the setting `allow_hosts`."""
    listener = socket.create_server(("127.0.0.1", 0))
    arena = Arena(listener.getsockname()[1])

    def resolve(host: str, _port: int) -> list[str]:
        arena.looked_up.append(host)
        if host not in (names or {}):
            raise OSError("unknown")
        return (names or {})[host]

    bounds = limits or Limits()
    proxy = Proxy(listener, Destinations(hosts, bounds, private, resolve), bounds, arena)
    try:
        yield arena
    finally:
        proxy.close()


def tls_site(answer: bytes) -> Site:
    """Return a TLS server whose certificate is for page.test."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return Site(answer, tls=context)


def hello_for(name: str | None) -> bytes:
    """Return the ClientHello of Python's own TLS for a server name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def get(target: str, host: str, more: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


def tunnel(authority: str) -> bytes:
    return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()


def opened(arena: Arena, authority: str) -> socket.socket:
    """Return a tunnel to a site."""
    sock = arena.connect()
    sock.sendall(tunnel(authority))
    assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    return sock
