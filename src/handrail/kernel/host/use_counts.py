"""Counts how often a rule was used, and when last. An error while counting never fails a call."""

import hashlib
import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from handrail.kernel.host.state_dir import locked_directory_of, read_text, write_whole


class Count(NamedTuple):
    """Holds how often something happened, and when last."""

    times: int
    last: datetime


class Tally:
    """Keeps counts by key in one of Handrail's own files."""

    def __init__(self, path: str) -> None:
        self._path = path

    @staticmethod
    def key(*facts: str) -> str:
        """Return the key of these facts: a hash, so that the file holds no text of a rule."""
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]

    def count(self, keys: list[str]) -> None:
        """Count each key once more."""
        if not keys:
            return
        with suppress(OSError), locked_directory_of(self._path):  # a full disk must not stop a call that a rule allows
            counts, now = self.read(), datetime.now(UTC).replace(microsecond=0)
            for key in keys:
                counts[key] = Count(counts[key].times + 1 if key in counts else 1, now)
            kept = {key: [count.times, count.last.isoformat()] for key, count in counts.items()}
            write_whole(self._path, json.dumps(kept).encode(), sync=False)  # a call does not wait for the disk

    def read(self) -> dict[str, Count]:
        """Return the counts; none if the file cannot be read or parsed."""
        try:
            found = json.loads(read_text(self._path) or "{}")
            return {key: Count(int(times), datetime.fromisoformat(last)) for key, (times, last) in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}
