"""Serves on loopback exactly the bytes that a test gives, at the time that it gives them."""

import contextlib
import functools
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import pytest

from handrail.kernel.web.fetcher import Fetched, Fetcher
from handrail.model.fetch_faults import FetchFailed
from handrail.model.limits import Limits

PLENTY = 60
"""Seconds. More than any fetch of the tests needs, so that no test depends on speed."""

Handler = Callable[[socket.socket, bytes], None]


class Site:
    """Passes each connection and the head of its request to `answer`; sets `stop` when the test ends."""

    def __init__(
        self,
        answer: Handler | bytes,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answer = answer
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port: int = self._listener.getsockname()[1]
        self.netloc = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.requests: list[bytes] = []
        self.stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def url(self, path: str = "/", *, host: str | None = None) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{f'{host}:{self.port}' if host else self.netloc}{path}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._start(functools.partial(self._serve, self._listener.accept()[0]))

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:  # the client may hang up at any time
            stack.enter_context(plain)
            peer = stack.enter_context(self._tls.wrap_socket(plain, server_side=True)) if self._tls else plain
            request = b""
            while b"\r\n\r\n" not in request and (more := peer.recv(4096)):
                request += more
            self.requests.append(request)
            if isinstance(self._answer, bytes):
                peer.sendall(self._answer)
            else:
                self._answer(peer, request)


def page(body: bytes = b"", kind: str | None = "text/plain", status: str = "200 OK", **headers: str) -> bytes:
    """Return a complete HTTP answer. Underscores in header names stand for hyphens."""
    fields = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    if kind is not None:
        fields["Content-Type"] = kind
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def moved(location: str, status: str = "302 Found") -> bytes:
    return page(status=status, kind=None, Location=location)


def fetch(site: Site, path: str = "/", seconds: float = PLENTY) -> Fetched:
    return Fetcher(Limits(), [site.netloc]).fetch(site.url(path), seconds)


def fetched(answer: bytes) -> Fetched:
    with Site(answer) as site:
        return fetch(site)


def failure(answer: Handler | bytes) -> str:
    with Site(answer) as site, pytest.raises(FetchFailed) as caught:
        fetch(site)
    assert caught.value.url == site.url()
    return caught.value.why
