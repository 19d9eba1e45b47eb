"""Holds one workspace in a host: makes its calls once for each id, saves it, forks it, restores it."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from handrail.errors import HandrailError
from handrail.fleet.call_gate import CallGate
from handrail.fleet.call_record import CallRecord, request_digest
from handrail.fleet.calling_workspace import dialect_by_name
from handrail.fleet.fleet_errors import DivergedError, StaleEpochError, UnsavableError
from handrail.kernel.fleet.node_directory import remove_tree
from handrail.kernel.fleet.saved_state import TreeCopy, forked
from handrail.model.fleet_limits import SNAPSHOT_BYTES, STATE_BYTES
from handrail.replay import comparable, differences, replaced
from handrail.runtime.session_memory import memory_of, recall
from handrail.workspace import Workspace, default_session

Json = dict[str, Any]
Tell = Callable[[Json], None]
_ROOT, _STATE = "<root>", "<state>"
_MOST_DIFFERENCES = 20


class HeldWorkspace:
    """Holds a workspace in this process, for one epoch."""

    def __init__(self, name: str, epoch: int, copy: TreeCopy, settings: Json, tell: Tell) -> None:
        self.name, self.epoch, self._copy, self._settings, self._tell = name, epoch, copy, settings, tell
        self.record = CallRecord()
        self._numbers = itertools.count(1)
        self._gate, self._unsaved = CallGate(), list[str]()
        self.forked = False
        self.former_roots: list[str] = []
        """Roots that the workspace had on other hosts: a caller may still name them."""
        self.workspace = Workspace.from_settings(copy.root, settings)

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
        with self._gate.call():
            answer = self.workspace.tools(dialect_by_name(dialect)).call(tool, _moved(params, moves), call_id=call_id)
            made = answer.to_dict()
            self._unsaved.append(call_id)
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
                raise DivergedError(
                    f"the call {entry['id']} had a different result when it was repeated", "", different
                )
            self._remember(entry, places)

    def _remember(self, entry: Json, places: dict[str, str]) -> None:
        digest = request_digest(entry["dialect"], entry["tool"], entry["params"], places)
        self.record.add(entry["id"], digest, entry["answer"])

    def _places(self, root: str) -> dict[str, str]:
        state = default_session(self.workspace).services.state.path
        roots = sorted((*self.former_roots, root), key=len, reverse=True)
        return {**dict.fromkeys(roots, _ROOT), state: _STATE}

    # ── states ──

    @contextmanager
    def save(self, place: str, *, wait: bool) -> Iterator[Json]:
        """Save the state into files, with the ids of the calls that it holds in addition to the state before.

        The block takes the files; no call is made meanwhile. Waits for running calls, or refuses while one runs. Raises
        UnsavableError if files alone do not hold the state, if they cannot be read, or if they are too large.
        """
        most = SNAPSHOT_BYTES if wait else STATE_BYTES
        with self._gate.alone(wait=wait):
            self._expect_files_only()
            try:
                saved = self._copy.save(place, most)
            except (OSError, HandrailError) as error:
                raise UnsavableError(f"the files of the workspace cannot be saved: {error}") from error
            memory = memory_of(default_session(self.workspace))
            yield {**saved._asdict(), "calls": self._unsaved, "memory": memory}
            self._unsaved = []

    def recall(self, memory: Json) -> None:
        """Let the session remember what it remembered when the state was saved."""
        recall(default_session(self.workspace), memory)

    def fork(self, name: str, root: str, place: str) -> "HeldWorkspace":
        """Return a second workspace with the same state. Raises UnsavableError if files alone do not hold the state."""
        with self._gate.alone(wait=True):
            self._expect_files_only()
            copy = forked(self._copy, root, place)
        self.forked = True
        made = HeldWorkspace(name, 1, copy, self._settings, self._tell)
        made.former_roots = [*self.former_roots, self.root]
        made.recall(memory_of(default_session(self.workspace)))
        return made

    def _expect_files_only(self) -> None:
        session = default_session(self.workspace)
        if session.holds_programs():
            raise UnsavableError("a program of the workspace is running", "End its terminals, jobs and shells first")
        if session.services.trees.has_memories():
            raise UnsavableError("the memory directory of the workspace is in use")

    def tell_note(self, name: str, value: Any) -> None:
        """Tell the fleet a note of the episode."""
        self._tell({"event": "noted", "workspace": self.name, "epoch": self.epoch, "name": name, "value": value})

    def close(self) -> None:
        """End all that runs in the workspace, and remove it."""
        state = default_session(self.workspace).services.state.path
        self.workspace.close()
        self._copy.close()
        remove_tree(state)


def _moved(value: Any, moves: dict[str, str]) -> Any:
    """Return parameters with former roots replaced by the present one."""
    if not moves:
        return value
    if isinstance(value, str):
        return replaced(value, moves)
    if isinstance(value, dict):
        return {key: _moved(each, moves) for key, each in value.items()}
    return [_moved(each, moves) for each in value] if isinstance(value, list) else value
