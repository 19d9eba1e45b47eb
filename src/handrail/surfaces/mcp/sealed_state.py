"""The state that a client carries from a question to its answer: sealed, bound to one call, used once."""

import hashlib
import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any


class StateRefused(Exception):  # noqa: N818  the reason is part of an answer
    pass


class Forged(StateRefused):
    """Not ours at all, where the others are ours and cannot be used, or not any more."""


class Sealer:
    """Its key lives as long as the process, so what another server or an earlier run sealed is refused. Times are
    the process's own too: a clock that is set neither ends a question nor brings a used answer back.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._key = secrets.token_bytes(32)
        self._used: dict[str, float] = {}

    def seal(self, call: str, facts: dict[str, Any]) -> str:
        """`call` is a digest of all that must be the same when the state comes back."""
        claims = {"id": secrets.token_hex(16), "until": time.monotonic() + self._seconds, "call": call, "facts": facts}
        body = urlsafe_b64encode(json.dumps(claims).encode()).decode()
        return f"{body}.{self._mac(body)}"

    def open(self, call: str, state: str) -> dict[str, Any]:
        body, _, mac = state.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(body).encode()):
            raise Forged("the state was not sealed by this server")
        claims = json.loads(urlsafe_b64decode(body))
        if not hmac.compare_digest(claims["call"], call):
            raise StateRefused("the state belongs to another call")
        if claims["until"] < time.monotonic():
            raise StateRefused("the question has expired")
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
    """One name for several values; what differs in any of them has another name."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else hashlib.sha256(value).hexdigest()
