"""Passes bytes between a client and a server until both have ended, with a bounded number of bytes waiting."""

import contextlib
import select
import socket
from dataclasses import field

from handrail.kernel.network.protocol_gates import OpenGate
from handrail.model.limits import Limits
from handrail.model.record import record


@record
class _Direction:
    """Holds one direction of a connection."""

    source: socket.socket
    target: socket.socket
    waiting: bytearray = field(default_factory=bytearray)
    ended: bool = False
    """True if the source sends no more."""
    closed: bool = False
    """True if the target knows it."""
    passed: int = 0

    def send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            count = self.target.send(self.waiting)
            del self.waiting[:count]
            self.passed += count

    def close_if_done(self) -> None:
        if self.ended and not self.waiting and not self.closed:
            self.closed = True
            with contextlib.suppress(OSError):  # the target has gone already
                self.target.shutdown(socket.SHUT_WR)


class Relay:
    """Passes bytes in both directions. `sent` and `received` count them."""

    def __init__(self, client: socket.socket, server: socket.socket, gate: OpenGate, limits: Limits) -> None:
        self._up, self._down = _Direction(client, server), _Direction(server, client)
        self._gate, self._limits = gate, limits
        client.setblocking(False)
        server.setblocking(False)

    @property
    def sent(self) -> int:
        return self._up.passed

    @property
    def received(self) -> int:
        return self._down.passed

    def run(self, first: bytes, rest: bytes) -> None:
        """Send the first bytes, then pass everything on until both sides have ended or nothing comes for too long.

        `rest` are bytes of the client that the gate has not seen. Raises Refused, and OSError for a connection that
        breaks.
        """
        self._up.waiting += first
        self._up.waiting += self._gate.from_client(rest)
        while not (self._down.closed and (self._up.closed or self._gate.finished)):
            poller = select.poll()
            for sock, events in self._interests().items():
                poller.register(sock, events)
            limits = self._limits
            seconds = limits.network_header_seconds if self._gate.finished else limits.network_idle_seconds
            ready = poller.poll(seconds * 1000)
            if not ready:
                return
            for fd, events in ready:
                self._advance(fd, events)
            for each in (self._up, self._down):
                each.close_if_done()

    def _interests(self) -> dict[int, int]:
        """Return what to wait for: room for what waits, and more bytes if few enough wait."""
        wanted = {self._up.source.fileno(): 0, self._down.source.fileno(): 0}
        for each, held, finished in ((self._up, self._gate.held, self._gate.finished), (self._down, 0, False)):
            full = len(each.waiting) + held >= self._limits.network_waiting_bytes
            if not (each.ended or finished or full):
                wanted[each.source.fileno()] |= select.POLLIN
            if each.waiting:
                wanted[each.target.fileno()] |= select.POLLOUT
        return {fd: events for fd, events in wanted.items() if events}

    def _advance(self, fd: int, events: int) -> None:
        reading, writing = (self._up, self._down) if fd == self._up.source.fileno() else (self._down, self._up)
        if events & select.POLLOUT or events & select.POLLERR:
            writing.send()
        if events & (select.POLLIN | select.POLLHUP) and not reading.ended:
            self._read(reading)

    def _read(self, direction: _Direction) -> None:
        try:
            data = direction.source.recv(self._limits.network_waiting_bytes)
        except BlockingIOError:
            return
        if not data:
            direction.ended = True
        elif direction is self._up:
            direction.waiting += self._gate.from_client(data)
        else:
            self._gate.from_server(data)
            direction.waiting += data
            self._up.waiting += self._gate.from_client(b"")
