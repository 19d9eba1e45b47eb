"""Runs the proxy through which commands reach the hosts that the user named.

Commands have a network of their own, in which nothing exists but themselves. The supervisor inside opens a port there
and hands it to this process over its Unix socket. So the proxy takes connections inside the sandbox and makes its own
ones outside, and no other sandbox and no other user has a way to the port. The proxy decides by the name that a client
asks for, looks the name up itself, connects to the address that it has checked, and compares the TLS server name.
"""

import select
import socket
import threading
from collections.abc import Sequence

from handrail.kernel.network.allowed_sites import Destinations
from handrail.kernel.network.connection_log import ConnectionLog
from handrail.kernel.network.conversation import Conversation
from handrail.model.limits import Limits

_PAUSE_SECONDS = 0.1
_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LOCAL = "localhost,127.0.0.1,::1"


class Proxy:
    """Serves the clients of one listening socket, each in a thread of its own, until `close()`."""

    def __init__(self, listener: socket.socket, destinations: Destinations, limits: Limits, log: ConnectionLog) -> None:
        """Take the listener over."""
        self._listener, self._destinations, self._limits, self._log = listener, destinations, limits, log
        self._lock, self._open, self._closed = threading.Lock(), set[Conversation](), False
        self._stop, self._stopping = socket.socketpair()
        self._listener.setblocking(False)
        self._port: int = listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, name="handrail-network", daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead programs to the proxy."""
        address = f"http://127.0.0.1:{self._port}"
        upper = dict.fromkeys(_NAMES, address) | {"NO_PROXY": _LOCAL}
        return upper | {name.lower(): value for name, value in upper.items()}

    def close(self) -> None:
        """End all connections and take no new ones."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            conversations = list(self._open)
        self._stop.close()
        for each in conversations:
            each.end()
        self._thread.join()

    def _serve(self) -> None:
        """Take connections until `close()`; the body of the thread."""
        poller = select.poll()
        poller.register(self._listener, select.POLLIN)
        poller.register(self._stopping, select.POLLIN)
        while not any(fd == self._stopping.fileno() for fd, _ in poller.poll()):
            try:
                client = self._listener.accept()[0]
            except OSError:  # the client has gone, or this process has no handle left
                self._pause()
                continue
            self._admit(client)
        self._listener.close()
        self._stopping.close()

    def _pause(self) -> None:
        """Wait a moment, or until this object is closed."""
        poller = select.poll()  # unlike select.select, it takes handles beyond 1023
        poller.register(self._stopping, select.POLLIN)
        poller.poll(_PAUSE_SECONDS * 1000)

    def _admit(self, client: socket.socket) -> None:
        """Serve a client in a thread; close its connection if too many are open."""
        client.setblocking(True)
        conversation = Conversation(client, self._destinations, self._limits, self._log.refused)
        with self._lock:
            if self._closed or len(self._open) >= self._limits.network_connections:
                client.close()
                return
            self._open.add(conversation)
        try:
            threading.Thread(target=self._converse, args=(conversation,), name="handrail-host", daemon=True).start()
        except RuntimeError:  # no thread is left
            with self._lock:
                self._open.discard(conversation)
            client.close()

    def _converse(self, conversation: Conversation) -> None:
        """Serve one client; the body of a thread."""
        try:
            record = conversation.run()
        finally:
            with self._lock:
                self._open.discard(conversation)
        self._log.ended(record)


def start_proxy(
    listener: socket.socket,
    hosts: Sequence[str],
    private_hosts: Sequence[str],
    limits: Limits,
    log: ConnectionLog | None,
) -> Proxy:
    """Start a proxy for these hosts; `private_hosts` are those whose address need not be public."""
    return Proxy(listener, Destinations(hosts, limits, private_hosts), limits, log or ConnectionLog(0))
