"""Holds one request of a client while a thread works on it, and the reply to a question that it waits for."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.model.faults import Cancelled
from handrail.model.withdrawal import Withdrawn, expect_wanted, withdrawn
from handrail.surfaces.mcp.mcp_protocol import Json

if TYPE_CHECKING:
    from handrail.surfaces.mcp.sessions import Client

_LOOK_SECONDS = 0.05
"""How often a question looks whether another place has answered it."""


class ClientError(Exception):
    """The client answered a question with an error of the protocol."""


class Reply:
    """Waits for the client's reply to one question; another thread delivers it, or says why there is none."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._answer: Json = {}
        self._failure: Exception | None = None

    def deliver(self, answer: Json) -> None:
        self._answer = answer
        self._done.set()

    def fail(self, failure: Exception) -> None:
        self._failure = failure
        self._done.set()

    def wait(self, seconds: float) -> Json:
        """Return the reply. Raises TimeoutError, what it failed with, and Withdrawn if another place has answered."""
        end = time.monotonic() + seconds
        elsewhere = withdrawn.get() is not None
        while not self._done.wait(min(seconds, _LOOK_SECONDS) if elsewhere else seconds):
            expect_wanted()
            if time.monotonic() >= end:
                raise TimeoutError
        if self._failure is not None:
            raise self._failure
        return self._answer


Send = Callable[[Json, Reply], Callable[[], None]]
"""Sends a question, whose answer goes into the reply; returns a function that takes the question back."""


def _cannot_send(_question: Json, _reply: Reply) -> Callable[[], None]:
    raise ClientError("the client takes no questions during a call")


class ClientRequest:
    """Holds one request of a client; another thread may stop it."""

    def __init__(
        self,
        number: int | str,
        params: Json,
        client: "Client",
        able: Json,
        send: Send | None,
        *,
        shared: bool = False,
        trusted: bool = True,
    ) -> None:
        """`able` has the capabilities of the client; `send` is None if its revision forbids questions during a call.

        `shared` is true if other clients work in the same workspaces, `trusted` is false if the client has no token.
        """
        self.id, self.params, self.client, self.able = number, params, client, able
        self.shared, self.trusted = shared, trusted
        self.cancel = threading.Event()
        self.can_ask, self._send, self._lock = send is not None, send or _cannot_send, threading.Lock()
        self._reply: Reply | None = None

    @property
    def meta(self) -> Json:
        """The `_meta` of the request."""
        return self.params.get("_meta") or {}

    def ask(self, question: Json, seconds: float) -> Json:
        """Ask the client and return its reply. Raises TimeoutError, ClientError, Cancelled and Withdrawn."""
        reply = Reply()
        with self._lock:
            if self.cancel.is_set():
                raise Cancelled
            self._reply = reply
        take_back = self._send(question, reply)
        try:
            return reply.wait(seconds)
        except (TimeoutError, Cancelled, Withdrawn):
            take_back()
            raise

    def stop(self) -> None:
        """End the call, and the question that it waits for."""
        with self._lock:
            self.cancel.set()
            if self._reply is not None:
                self._reply.fail(Cancelled())


Answer = Callable[[ClientRequest], Json]
"""Returns the result of a request. Raises ProtocolError."""
