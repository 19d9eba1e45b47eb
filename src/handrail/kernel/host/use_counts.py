"""How often something happened, and when last: kept beside the state, and never worth failing a call for."""

import hashlib
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from handrail.kernel.host.state_dir import locked_beside, read_text, write_text


class Count(NamedTuple):
    times: int
    last: datetime


class Tally:
    def __init__(self, path: str) -> None:
        self._path = path

    @staticmethod
    def key(*facts: str) -> str:
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]

    def count(self, keys: list[str]) -> None:
        if not keys:
            return
        with suppress(OSError), locked_beside(self._path):  # a full disk must not stop what a rule allows
            counts, now = self.read(), datetime.now(UTC).replace(microsecond=0)
            for key in keys:
                counts[key] = Count(counts[key].times + 1 if key in counts else 1, now)
            kept = {key: [count.times, count.last.isoformat()] for key, count in counts.items()}
            write_text(self._path, json.dumps(kept))

    def read(self) -> dict[str, Count]:
        """What was counted; nothing where the file cannot be read or understood."""
        try:
            found = json.loads(read_text(self._path) or "{}")
            return {key: Count(int(times), datetime.fromisoformat(last)) for key, (times, last) in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
