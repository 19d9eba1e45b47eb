"""Seals the state that a client sends back with an answer: it is bound to one call and valid once."""

import hashlib
import hmac
import json
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any


class StateRefused(Exception):  # noqa: N818  its text is part of an answer
    """The state cannot be used: it is forged, expired, used or for another call."""


class Forged(StateRefused):
    """The state was not issued by this server."""


class Sealer:
    """Seals states and opens them again.

    The key exists only in this process, so states of other servers and earlier runs are refused. Times come from the
    monotonic clock: a change of the system time neither ends a question nor makes a used answer valid again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._used: dict[str, float] = {}

    def seal(self, call: str, facts: dict[str, Any]) -> str:
        """Return a sealed state; `call` is a digest of everything that must be the same when the state is opened."""
        claims = {"id": secrets.token_hex(16), "until": time.monotonic() + self._seconds, "call": call, "facts": facts}
        body = urlsafe_b64encode(json.dumps(claims).encode()).decode()
        return f"{body}.{self._mac(body)}"

    def open(self, call: str, state: str) -> dict[str, Any]:
        """Return the facts of a state and mark it as used; raise StateRefused if it cannot be used."""
        body, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(body).encode()):
            raise Forged("the state was not sealed by this server")
        claims = json.loads(urlsafe_b64decode(body))
        if not hmac.compare_digest(claims["call"], call):
            raise StateRefused("the state belongs to another call")
        if claims["until"] < time.monotonic():
            raise StateRefused(f"no user answered: the question was open for {self._seconds:g} seconds")
        with self._lock:  # one of several calls with the same state uses it
            if claims["id"] in self._used:
                raise StateRefused("the answer was already used")
            self._remember(claims["id"], claims["until"])
        facts: dict[str, Any] = claims["facts"]
        return facts

    def _remember(self, name: str, until: float) -> None:
        now = time.monotonic()
        self._used = {each: end for each, end in self._used.items() if end >= now}
        self._used[name] = until

    def _mac(self, body: str) -> str:
        return hmac.new(self._key, body.encode(errors="replace"), hashlib.sha256).hexdigest()


def digest(*parts: Any) -> str:
    """Return one hash for several values; if one value differs, the hash differs."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else hashlib.sha256(value).hexdigest()
