"""Reaches a host that is a child of this process: sends requests, hands out answers and events, notices the end."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

from handrail.errors import HandrailError
from handrail.fleet.fleet_errors import FleetError, HostDiedError, from_json
from handrail.fleet.host_engine import Json, Reply
from handrail.kernel.fleet.frames import MessageTooLong
from handrail.kernel.fleet.host_process import HostProcess


class ChildLink:
    """Holds the connection to one child."""

    def __init__(self, child: HostProcess, on_event: Callable[[Json], None], on_end: Callable[[], None]) -> None:
        self.child = child
        self._on_event, self._on_end = on_event, on_end
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._waiting: dict[int, Reply] = {}
        self._ended = False
        self._reader = threading.Thread(target=self._read, name="handrail-fleet", daemon=True)
        self._reader.start()

    def begin(self, request: Json, reply: Reply) -> None:
        """Send a request; `reply` is called in another thread."""
        with self._lock:
            number = next(self._numbers)
            if not self._ended:
                self._waiting[number] = reply
        if number not in self._waiting:
            reply(None, HostDiedError("the host has ended"))
            return
        try:
            self.child.frames.send({**request, "n": number})
        except MessageTooLong as error:
            self._settle(number, None, FleetError(str(error)))
        except OSError:
            self._settle(number, None, HostDiedError("the host has ended"))

    def _settle(self, number: int, value: Any, error: HandrailError | None) -> None:
        with self._lock:
            reply = self._waiting.pop(number, None)
        if reply is not None:
            reply(value, error)

    def _read(self) -> None:
        try:
            while (message := self.child.frames.receive()) is not None:
                if "event" in message:
                    self._on_event(message)
                elif "error" in message:
                    self._settle(message["n"], None, from_json(message["error"]))
                else:
                    self._settle(message["n"], message.get("value"), None)
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._ended, left = True, list(self._waiting.values())
            self._waiting.clear()
        for reply in left:
            reply(None, HostDiedError("the host has ended"))
        self._on_end()

    def close(self, *, at_once: bool = False) -> None:
        """End the child, and wait until it is gone."""
        self.child.end(at_once=at_once)
        if threading.current_thread() is not self._reader:
            self._reader.join()


def asked(link: Any, request: Json, seconds: float | None = None) -> Any:
    """Send a request over a link and wait for its value. Raises the error of the host, and HostDiedError."""
    answered = threading.Event()
    found: list[Any] = []

    def reply(value: Any, error: HandrailError | None) -> None:
        found.extend((value, error))
        answered.set()

    link.begin(request, reply)
    if not answered.wait(seconds):
        raise HostDiedError(f"the host did not answer within {seconds:g} seconds")
    value, error = found
    if error is not None:
        raise error
    return value
