"""Holds what the fleet needs to restore a workspace elsewhere: its tree, its last saved state, and the calls since."""

import threading
from typing import Any

Json = dict[str, Any]


class Ledger:
    """Holds the past of one workspace outside its host, under the lease of the present epoch."""

    def __init__(self, tree: str, base: Json | None = None) -> None:
        """Begin with a tree, or with a saved state as `base`."""
        self.tree, self.epoch = tree, 0
        self._base = base
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        """Forget all calls, and every saved state but the first one."""
        self._saved, self._notes = self._base, dict[str, Any]()
        self._answers, self._redo = list[Json](), dict[str, Json]()
        self._held, self._roots = set[str](), list[str]()
        self.forked = False

    def next_lease(self) -> int:
        """Return the lease for another host; from now on, everything that the host before it sends is refused."""
        with self._lock:
            self.epoch += 1
            self._held.clear()
            if self.forked:
                self._begin()
            return self.epoch

    def forget(self) -> None:
        """Forget saved states and calls: the next host gets the workspace as it was in the beginning."""
        with self._lock:
            self._begin()

    def opened(self, root: str) -> None:
        """Note the root of the workspace on its present host."""
        with self._lock:
            self._roots.append(root)

    def take(self, event: Json) -> bool:
        """Take an event of the workspace's host; return False if it comes from an earlier epoch."""
        with self._lock:
            if event["epoch"] != self.epoch:
                return False
            kind = event["event"]
            if kind == "logged":
                self._log(event["entry"])
            elif kind == "opened":
                self._roots.append(event["root"])
            elif kind == "noted":
                self._notes[event["name"]] = event["value"]
            elif kind == "saved":
                self._save(event["saved"])
            elif kind == "forked":
                self.forked = True
            return True

    def log(self, entry: Json) -> int:
        """Note a call; return how many calls a restored workspace would make again."""
        with self._lock:
            self._log(entry)
            return len(self._redo)

    def _log(self, entry: Json) -> None:
        if entry["id"] in self._held:  # its answer came after the state that has its effect
            self._held.remove(entry["id"])
            self._answers.append(entry)
        else:
            self._redo[entry["id"]] = entry

    def save(self, saved: Json) -> None:
        """Note a saved state."""
        with self._lock:
            self._save(saved)

    def _save(self, saved: Json) -> None:
        self._saved = saved
        for call_id in saved["calls"]:
            entry = self._redo.pop(call_id, None)
            if entry is None:
                self._held.add(call_id)
            else:
                self._answers.append(entry)

    def request(self, *, with_answers: bool) -> Json:
        """Return what the next host needs."""
        with self._lock:
            saved = self._saved
            roots = [*self._roots, *([saved["root"]] if saved else [])]
            return {
                "tree": self.tree,
                "epoch": self.epoch,
                "saved": saved,
                "redo": [*self._redo.values()],
                "answers": [*self._answers] if with_answers else [],
                "notes": dict(self._notes),
                "roots": [*dict.fromkeys(roots)],
            }

    @property
    def calls(self) -> int:
        """How many calls were made, those before the last saved state included."""
        return len(self._answers) + len(self._redo)
