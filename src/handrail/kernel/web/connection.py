"""Connections to addresses that were checked before, every wait bound by the deadline of the whole fetch.

httpcore2 speaks HTTP and TLS over them. It thinks that it connects to the name, so that the Host header, SNI and the
certificate are about the name; but the name is never looked up again.
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
    def __init__(self, sock: socket.socket, deadline: Deadline, header_bytes: int) -> None:
        self._sock, self._deadline = sock, deadline
        self._header_bytes = header_bytes
        self._room: int | None = header_bytes

    def headers_are_in(self) -> None:
        self._room = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002  the deadline rules
        if self._room == 0:
            raise httpcore2.RemoteProtocolError(f"headers of more than {self._header_bytes} bytes")
        size = max_bytes if self._room is None else min(max_bytes, self._room)
        data = self._patiently(partial(self._sock.recv, size), selectors.EVENT_READ)
        if self._room is not None:
            self._room -= len(data)
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002  the interface has it
        view = memoryview(buffer)
        while view:
            try:
                sent = self._patiently(partial(self._sock.send, view), selectors.EVENT_WRITE)
            except OSError as error:
                # httpcore2 then reads on: a server may answer and hang up before it has read the request.
                raise httpcore2.WriteError from error
            view = view[sent:]

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002  the interface has it
    ) -> "Connection":
        secured = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname, do_handshake_on_connect=False)
        wire = Connection(secured, self._deadline, self._header_bytes)
        try:
            wire._patiently(secured.do_handshake, selectors.EVENT_READ)
        except BaseException:
            secured.close()
            raise
        return wire

    def close(self) -> None:
        self._sock.close()

    def get_extra_info(self, info: str) -> Any:
        return self._sock if info == "ssl_object" and isinstance(self._sock, ssl.SSLSocket) else None

    def _patiently(self, act: Callable[[], T], event: int) -> T:
        while True:
            self._deadline.left()
            try:
                return act()
            except ssl.SSLWantReadError:
                _ready(self._sock, selectors.EVENT_READ, self._deadline)
            except ssl.SSLWantWriteError:
                _ready(self._sock, selectors.EVENT_WRITE, self._deadline)
            except BlockingIOError:
                _ready(self._sock, event, self._deadline)


class Dialer(httpcore2.NetworkBackend):
    """Connects to the first of the checked addresses that answers, whatever name is asked for."""

    def __init__(self, addresses: Sequence[str], deadline: Deadline, header_bytes: int) -> None:
        self._addresses, self._deadline, self._header_bytes = addresses, deadline, header_bytes

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002  it was resolved and checked before
        port: int,
        timeout: float | None = None,  # noqa: ARG002  the interface has it
        local_address: str | None = None,  # noqa: ARG002  the interface has it
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002  the interface has it
    ) -> Connection:
        *others, last = self._addresses
        for address in others:
            with contextlib.suppress(OSError):  # the next one may answer; only the last one's error counts
                return self._wire(address, port, self._deadline.left() / 2)
        return self._wire(last, port, None)

    def _wire(self, address: str, port: int, seconds: float | None) -> Connection:
        return Connection(_connected(address, port, self._deadline, seconds), self._deadline, self._header_bytes)


def _connected(address: str, port: int, deadline: Deadline, seconds: float | None) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        code = sock.connect_ex((address, port))
        if code in _CONNECTING:
            arrived = _ready(sock, selectors.EVENT_WRITE, deadline, seconds)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if arrived else errno.ETIMEDOUT
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _ready(sock: socket.socket, event: int, deadline: Deadline, seconds: float | None = None) -> bool:
    """Wait until the socket is ready; False if that took longer than `seconds`."""
    end = None if seconds is None else time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(sock, event)
        while not selector.select(deadline.glance()):
            if end is not None and time.monotonic() > end:
                return False
    return True
