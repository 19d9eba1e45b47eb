"""Connects to addresses that the fetcher checked before; the deadline of the fetch bounds every wait.

httpcore2 speaks HTTP and TLS over these connections. httpcore2 is given the host name, so the Host header, SNI and
the certificate check use the name; but nothing looks the name up again.
"""

import contextlib
import errno
import os
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import httpcore2

from handrail.kernel.deadline import Deadline

_CONNECTING = (errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", errno.EINPROGRESS))


T = TypeVar("T")


class Connection(httpcore2.NetworkStream):
    """Reads and writes one socket until the deadline; reads at most `header_bytes` before the headers are complete."""

    def __init__(self, sock: socket.socket, deadline: Deadline, header_bytes: int) -> None:
        self._sock, self._deadline = sock, deadline
        self._header_bytes = header_bytes
        self._header_bytes_left: int | None = header_bytes
        """None once the headers are complete."""

    def headers_received(self) -> None:
        """Stop counting bytes: the headers are complete."""
        self._header_bytes_left = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  the deadline bounds the wait
        """Return the next bytes, at most `max_bytes`."""
        if self._header_bytes_left == 0:
            raise httpcore2.RemoteProtocolError(f"headers of more than {self._header_bytes} bytes")
        left = self._header_bytes_left
        size = max_bytes if left is None else min(max_bytes, left)
        data = self._retry_until_ready(partial(self._sock.recv, size), selectors.EVENT_READ)
        if left is not None:
            self._header_bytes_left = left - len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  the interface requires it
        """Send all bytes."""
        view = memoryview(buffer)
        while view:
            try:
                sent = self._retry_until_ready(partial(self._sock.send, view), selectors.EVENT_WRITE)
            except OSError as error:
                # httpcore2 then continues to read: a server may answer and close before it has read the request.
                raise httpcore2.WriteError from error
            view = view[sent:]

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  the interface requires it
    ) -> "Connection":
        """Return a connection that encrypts this one."""
        secured = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=False)
        connection = Connection(secured, self._deadline, self._header_bytes)
        try:
            connection._retry_until_ready(secured.do_handshake, selectors.EVENT_READ)
        except BaseException:
            secured.close()
            raise
        return connection

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        """Return the TLS socket for "ssl_object", and None for every other name."""
        return self._sock if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket) else None

    def _retry_until_ready(self, operation: Callable[[], T], event: int) -> T:
        """Call a non-blocking operation until it succeeds; wait for the socket in between."""
        while True:
            self._deadline.check()
            try:
                return operation()
            except ssl.SSLWantReadError:
                _wait_until_ready(self._sock, selectors.EVENT_READ, self._deadline)
            except ssl.SSLWantWriteError:
                _wait_until_ready(self._sock, selectors.EVENT_WRITE, self._deadline)
            except BlockingIOError:
                _wait_until_ready(self._sock, event, self._deadline)


class Dialer(httpcore2.NetworkBackend):
    """Connects to the first of the checked addresses that answers, for every host name."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline, header_bytes: int) -> None:
        self._addresses, self._deadline, self._header_bytes = addresses, deadline, header_bytes

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002  the fetcher resolved and checked it
        port: int,
        timeout: float | None = None,  # noqa: ARG002  the interface requires it
        local_address: str | None = None,  # noqa: ARG002  the interface requires it
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002  the interface requires it
    ) -> Connection:
        """Return a connection. Each address but the last gets half of the time that is left."""
        *others, last = self._addresses
        for address in others:
            with contextlib.suppress(OSError):  # try the next address; only the error of the last one is reported
                return self._connection(address, port, self._deadline.check() / 2)
        return self._connection(last, port, None)

    def _connection(self, address: str, port: int, seconds: float | None) -> Connection:
        return Connection(_connected(address, port, self._deadline, seconds), self._deadline, self._header_bytes)


def _connected(address: str, port: int, deadline: Deadline, seconds: float | None) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        code = sock.connect_ex((address, port))
        if code in _CONNECTING:
            ready = _wait_until_ready(sock, selectors.EVENT_WRITE, deadline, seconds)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _wait_until_ready(sock: socket.socket, event: int, deadline: Deadline, seconds: float | None = None) -> bool:
    """Wait until the socket is ready. Return False if that takes longer than `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(sock, event)
        while not selector.select(deadline.wait_seconds()):
            if end is not None and time.monotonic() > end:
                return False
    return True
