"""Remembers the answers to calls by their ids, so that a repeated id is answered without a second effect."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from handrail.fleet.fleet_errors import CallIdError, DivergedError
from handrail.replay import replaced

Json = dict[str, Any]


def request_digest(dialect: str, tool: str, params: Any, places: Mapping[str, str]) -> str:
    """Return what identifies a request; `places` maps the roots that the workspace has had to one name."""
    text = json.dumps([dialect, tool, params], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(replaced(text, places).encode(errors="surrogatepass")).hexdigest()


class CallRecord:
    """Holds the calls that a workspace has answered. If several threads ask for one id, the call is made once."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[str, Json]] = {}
        self._running: set[str] = set()
        self._changed = threading.Condition()
        self.restored = False
        """True if the workspace was restored: an id with another call then means a divergence."""

    def once(self, call_id: str, digest: str, make: Callable[[], Json]) -> Json:
        """Return the recorded answer to a call, or make the call and record its answer.

        Raises CallIdError if the id stands for another call, or DivergedError if that happens after a restore.
        """
        with self._changed:
            self._changed.wait_for(lambda: call_id not in self._running)
            if call_id in self._answers:
                return self._known(call_id, digest)
            self._running.add(call_id)
        try:
            answer = make()
            self.add(call_id, digest, answer)
        finally:
            with self._changed:
                self._running.discard(call_id)
                self._changed.notify_all()
        return answer

    def add(self, call_id: str, digest: str, answer: Json) -> None:
        """Remember an answer."""
        with self._changed:
            self._answers[call_id] = digest, answer

    def _known(self, call_id: str, digest: str) -> Json:
        expected, answer = self._answers[call_id]
        if expected != digest:
            message = f"the call id {call_id} stands for another call already"
            if self.restored:
                raise DivergedError(message, "The episode makes other calls than before its host died")
            raise CallIdError(message, "Give each call an id of its own")
        return answer

    def __len__(self) -> int:
        return len(self._answers)
