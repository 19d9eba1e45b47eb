"""Serves one client of the proxy: reads what it asks for, decides, connects, and passes bytes on."""

import contextlib
import socket
import time
from collections.abc import Callable

from handrail.kernel.network.allowed_sites import Destinations
from handrail.kernel.network.asked_site import AskedSite, answer_connected, answer_refused, read_asked, refusal_page
from handrail.kernel.network.client_stream import ClientStream
from handrail.kernel.network.protocol_gates import OneRequestGate, OpenGate, tunnel_gate
from handrail.kernel.network.refusals import ConnectionRecord, Refused
from handrail.kernel.network.relay import Relay
from handrail.model.limits import Limits
from handrail.ops.network.client_hello import ACCESS_DENIED
from handrail.ops.network.http_request import passed_on

_LAST_SECONDS, _LAST_BYTES = 2.0, 1 << 20
"""How long, and how much, a refused client may still send."""


class Conversation:
    """Holds the two sockets of one connection. `run` serves it; `end` may be called from another thread."""

    def __init__(
        self,
        client: socket.socket,
        destinations: Destinations,
        limits: Limits,
        on_refused: Callable[[ConnectionRecord], None],
    ) -> None:
        """`on_refused` is called before the client learns that it is refused."""
        self._client, self._destinations, self._limits = client, destinations, limits
        self._on_refused = on_refused
        self._server: socket.socket | None = None
        self._asked: AskedSite | None = None
        self._relay: Relay | None = None
        self._address = ""
        self._ended = False

    def run(self) -> ConnectionRecord:
        """Serve the client to the end of its connection; return what became of it."""
        stream = ClientStream(self._client, self._limits.network_header_seconds)
        refused = Refused("")
        try:
            self._serve(stream)
        except Refused as caught:
            refused = caught
            if refused.why != "ended":  # the client itself gave up
                self._on_refused(self._record(refused))
            with contextlib.suppress(OSError):  # the client has gone
                self._say_refused(stream, refused)
        except OSError:  # one side broke the connection
            pass
        finally:
            self._close()
        return self._record(refused)

    def _record(self, refused: Refused) -> ConnectionRecord:
        asked, relay = self._asked, self._relay
        return ConnectionRecord(
            asked.site if asked else None,
            asked.via if asked else "",
            refused.why,
            refused.detail,
            self._address,
            relay.sent if relay else 0,
            relay.received if relay else 0,
        )

    def end(self) -> None:
        """Break both connections off, so that `run` returns."""
        self._ended = True
        for sock in (self._client, self._server):
            if sock is not None:
                with contextlib.suppress(OSError):  # not connected any more
                    sock.shutdown(socket.SHUT_RDWR)

    def _serve(self, stream: ClientStream) -> None:
        asked = self._asked = read_asked(stream, self._limits)
        self._destinations.check(asked.site)
        gate = OpenGate() if asked.request is None else OneRequestGate(asked.request)
        server, self._address = self._destinations.connect(asked.site)
        self._server = server
        if self._ended:
            return
        first = b""
        answer_connected(stream, asked)
        if asked.request is not None:
            first = passed_on(asked.request, asked.site, asked.path)
        else:
            gate, first = self._tunnel(stream, asked, server)
        relay = self._relay = Relay(self._client, server, gate, self._limits)
        relay.run(first, stream.held)

    def _tunnel(self, stream: ClientStream, asked: AskedSite, server: socket.socket) -> tuple[OpenGate, bytes]:
        """Return the gate of a tunnel. Where anything may be spoken, a server that speaks first is let through."""
        stream.restart_time()
        anything = self._destinations.speaks_anything(asked.site)
        if anything and not stream.held and self._client.fileno() not in stream.wait_for(self._client, server):
            return OpenGate(), b""
        return tunnel_gate(stream, asked.site, self._limits, anything=anything)

    def _say_refused(self, stream: ClientStream, refused: Refused) -> None:
        """Answer a refusal in the protocol that the client speaks, unless the server has begun to answer."""
        self._client.settimeout(_LAST_SECONDS)
        if self._server is None:
            answer_refused(stream, self._asked, refused)
        elif self._relay is None or not self._relay.received:
            sites = None if self._asked is None else self._asked.site
            page = ACCESS_DENIED if refused.why == "server_name" else refusal_page(refused, sites)
            self._client.sendall(page)
        self._read_the_rest()

    def _read_the_rest(self) -> None:
        """Read what the client still sends: to close a socket with unread bytes would take the answer back."""
        self._client.shutdown(socket.SHUT_WR)
        until, left = time.monotonic() + _LAST_SECONDS, _LAST_BYTES
        while left > 0 and time.monotonic() < until:
            data = self._client.recv(65536)
            left -= len(data)
            if not data:
                return

    def _close(self) -> None:
        for sock in (self._server, self._client):
            if sock is not None:
                sock.close()
