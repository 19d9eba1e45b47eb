"""Reads from one client of the proxy within bounds of time and size."""

import select
import socket
import time

from handrail.kernel.network.refusals import Refused

_ONCE = 64 * 1024


class ClientStream:
    """Holds the socket of a client and the bytes that were read, but not used yet."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self.sock, self.held = sock, b""
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    def restart_time(self) -> None:
        """Give the client the whole time again: it has said what it wants, and says the next thing."""
        self._until = time.monotonic() + self._seconds

    def fill(self) -> None:
        """Wait for more bytes. Raises Refused if none come in time, or none come any more."""
        self.wait_for(self.sock)
        data = self.sock.recv(_ONCE)
        if not data:
            raise Refused("ended")
        self.held += data

    def wait_for(self, *sockets: socket.socket) -> list[int]:
        """Wait until one of these sockets can be read; return their handles. Raises Refused after the time."""
        poller = select.poll()
        for each in sockets:
            poller.register(each, select.POLLIN)
        left = self._until - time.monotonic()
        ready = poller.poll(left * 1000) if left > 0 else []
        if not ready:
            raise Refused("slow")
        return [fd for fd, _ in ready]

    def exactly(self, count: int) -> bytes:
        """Take this many bytes."""
        while len(self.held) < count:
            self.fill()
        taken, self.held = self.held[:count], self.held[count:]
        return taken

    def through(self, end: bytes, limit: int) -> bytes:
        """Take all bytes up to an end and with it. Raises Refused if the end does not come within the limit."""
        searched = 0
        while (at := self.held.find(end, max(0, searched - len(end)), limit)) < 0:
            searched = len(self.held)
            if searched >= limit:
                raise Refused("too_long")
            self.fill()
        return self.exactly(at + len(end))
