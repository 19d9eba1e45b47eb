"""Holds one workspace in a host: makes its calls once for each id, saves it, forks it, restores it."""

import itertools
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from handrail.fleet.call_record import CallRecord, request_digest
from handrail.fleet.calling import dialect_by_name
from handrail.fleet.fleet_errors import DivergedError, StaleEpochError, UnsavableError
from handrail.kernel.fleet.copied_tree import CopiedTree, SavedState
from handrail.model.fleet_limits import CALL_BATCH
from handrail.replay import comparable, differences, replaced
from handrail.workspace import Workspace, default_session

Json = dict[str, Any]
Tell = Callable[[Json], None]
_ROOT, _STATE = "<root>", "<state>"
_MOST_DIFFERENCES = 20


class HeldWorkspace:
    """A workspace in this process, under the lease of an epoch."""

    def __init__(self, name: str, epoch: int, copy: CopiedTree, settings: Json, tell: Tell) -> None:
        self.name, self.epoch, self._copy, self._settings, self._tell = name, epoch, copy, settings, tell
        self.record = CallRecord()
        self._calling = threading.Lock()
        self._numbers = itertools.count(1)
        self.forked = False
        self.former_roots: list[str] = []
        """Roots that the workspace had on other hosts: a caller may still name them."""
        self._open()

    def _open(self) -> None:
        self.workspace = Workspace.from_settings(self._copy.root, self._settings)

    @property
    def root(self) -> str:
        return self.workspace.root

    def check(self, epoch: int) -> None:
        """Raise StaleEpochError if the caller has the lease of another epoch."""
        if epoch != self.epoch:
            raise StaleEpochError(f"the workspace {self.name} has epoch {self.epoch}, and the call has {epoch}")

    # ── calls ──

    def call(self, dialect: str, tool: str, params: Any, call_id: str | None, *, log: bool = False) -> Json:
        """Make a call, or return the recorded answer to its id. `log` tells the fleet what was called and answered."""
        call_id = call_id or str(next(self._numbers))
        digest = request_digest(dialect, tool, params, self._places(self.root))
        return self.record.once(call_id, digest, partial(self._made, dialect, tool, params, call_id, log=log))

    def _made(self, dialect: str, tool: str, params: Any, call_id: str, *, log: bool) -> Json:
        moves = dict.fromkeys(self.former_roots, self.root)
        answer = self.workspace.tools(dialect_by_name(dialect)).call(tool, _moved(params, moves), call_id=call_id)
        made = answer.to_dict()
        if log:
            entry = {"id": call_id, "dialect": dialect, "tool": tool, "params": params, "answer": made}
            self._tell({"event": "logged", "workspace": self.name, "epoch": self.epoch, "entry": entry})
        return made

    def restore(self, answers: Iterable[Json], redo: Iterable[Json], former_roots: list[str]) -> None:
        """Remember earlier answers, and make the calls after the saved state again. Raises DivergedError."""
        self.former_roots = [each for each in former_roots if each != self.root]
        self.record.restored = True
        places = self._places(self.root)
        for entry in answers:
            self._remember(entry, places)
        for entry in redo:
            now = self._made(entry["dialect"], entry["tool"], entry["params"], entry["id"], log=False)
            known = {_STATE: _STATE, **dict.fromkeys(self.former_roots, _ROOT)}
            found = differences(comparable(entry["answer"], known), comparable(now, places))
            if different := [[entry["id"], *each] for each in itertools.islice(found, _MOST_DIFFERENCES)]:
                raise DivergedError(f"the call {entry['id']} had another result when it was made again", "", different)
            self._remember(entry, places)

    def _remember(self, entry: Json, places: dict[str, str]) -> None:
        digest = request_digest(entry["dialect"], entry["tool"], entry["params"], places)
        self.record.add(entry["id"], digest, entry["answer"])

    def _places(self, root: str) -> dict[str, str]:
        state = default_session(self.workspace).services.state.path
        roots = sorted((*self.former_roots, root), key=len, reverse=True)
        return {**dict.fromkeys(roots, _ROOT), state: _STATE}

    # ── states ──

    @property
    def holds_programs(self) -> bool:
        """True if a terminal, a job or a shell that remembers runs: no saved state would have it."""
        return default_session(self.workspace).holds_programs()

    def save(self, place: str) -> SavedState:
        """Save the state between two calls. Raises UnsavableError while programs run on."""
        if self.holds_programs:
            raise UnsavableError("a program of the workspace is running", "End its terminals, jobs and shells first")
        return self._copy.save(place)

    def fork(self, name: str, root: str) -> "HeldWorkspace":
        """Return a second workspace with the same state. Raises UnsavableError while programs run on."""
        if self.holds_programs:
            raise UnsavableError("a program of the workspace is running", "End its terminals, jobs and shells first")
        self.forked = True
        made = HeldWorkspace(name, 1, self._copy.fork(root), self._settings, self._tell)
        made.former_roots = [*self.former_roots, self.root]
        return made

    def close(self) -> None:
        self.workspace.close()


def _moved(value: Any, moves: dict[str, str]) -> Any:
    """Return parameters with former roots replaced by the present one."""
    if not moves:
        return value
    if isinstance(value, str):
        return replaced(value, moves)
    if isinstance(value, dict):
        return {key: _moved(each, moves) for key, each in value.items()}
    return [_moved(each, moves) for each in value] if isinstance(value, list) else value


__all__ = ["CALL_BATCH", "HeldWorkspace"]
