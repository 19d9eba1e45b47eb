"""Lets a program use a workspace from outside its host. If the host dies, the fleet restores it on another one."""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from handrail.errors import ClosedError
from handrail.fleet.call_record import CallRecord, request_digest
from handrail.fleet.calling_workspace import CallingWorkspace, result_of
from handrail.fleet.fleet_errors import BusyError, DivergedError, FleetError, HostDiedError, UnsavableError
from handrail.fleet.ledger import Ledger
from handrail.kernel.fleet import run_files
from handrail.model.fleet_limits import CALL_BATCH, DEATHS

if TYPE_CHECKING:
    from handrail.fleet.fleet import Fleet
    from handrail.fleet.pool import HostSlot
    from handrail.tools.tool import ToolResult

Json = dict[str, Any]


class FleetSnapshot(NamedTuple):
    """Holds a saved state of a workspace: `fleet.open(snapshot)` returns a workspace that begins with it."""

    id: str
    """Names the content: equal states of one tree have equal ids."""
    tree: str
    state: Json

    def save(self, path: str) -> None:
        """Write the snapshot into a file."""
        run_files.replace_text(path, json.dumps([self.id, self.tree, self.state]))

    @classmethod
    def load(cls, path: str) -> Self:
        """Read a snapshot from a file. Raises FleetError."""
        found = run_files.read_json(path)
        if not (isinstance(found, list) and [type(each) for each in found] == [str, str, dict]):
            raise FleetError(f"{path} is not a snapshot")
        return cls(*found)


class FleetWorkspace(CallingWorkspace):
    """Drives one workspace of a fleet. Close it, or use it in a `with` statement."""

    def __init__(self, fleet: "Fleet", name: str, ledger: Ledger, settings: Json) -> None:
        self._fleet, self.name, self._ledger, self._settings = fleet, name, ledger, settings
        self._slot: HostSlot | None = None
        self._moving, self._saving = threading.RLock(), threading.Lock()
        self._numbers = itertools.count(1)
        self._record = CallRecord()
        self._closed = False
        self._diverged: DivergedError | None = None
        self.root = ""
        """The directory in which the tools work, on the host."""
        self.copied = ""
        """Why the workspace is a full copy of its tree; empty if it is an overlay."""

    # ── where it is ──

    def _place(self) -> "HostSlot":
        """Return the host; find one, and restore the workspace there, if it has none."""
        with self._moving:
            if self._closed:
                raise ClosedError(f"the workspace {self.name} is closed")
            if self._diverged:
                raise self._diverged
            deaths = 0
            while deaths < DEATHS:
                if self._slot is not None and self._slot.alive:
                    return self._slot
                self._leave()
                deaths += self._move()
            raise FleetError(f"{DEATHS} hosts died while they opened the workspace {self.name}")

    def _move(self) -> bool:
        """Open the workspace on a host; wait for one that has room. Return True if the host died."""
        slot = self._fleet.take_slot(self._ledger.tree)
        self._ledger.next_lease()
        request = {"op": "open", "workspace": self.name, "settings": self._settings, "most": self._fleet.per_host}
        try:
            self._fleet.provide(slot, self._ledger.tree)
            opened = slot.ask({**request, **self._ledger.request(with_answers=False)})
        except BusyError as error:
            self._fleet.give_back(slot, busy=str(error))
        except HostDiedError:
            self._fleet.give_back(slot)
            return True
        except DivergedError as error:
            self._fleet.give_back(slot)
            self._diverged = error
            raise
        except BaseException:
            self._fleet.give_back(slot)
            raise
        else:
            self._slot, self.root, self.copied = slot, opened["root"], opened["copied"]
            self._ledger.opened(self.root)
        return False

    def _leave(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            self._fleet.give_back(slot)

    def ask(self, operation: str, **more: Any) -> Any:
        """Send a request to the host; if the host dies, restore the workspace and send it again."""
        while True:
            slot, epoch = self._place(), self._ledger.epoch
            try:
                return slot.ask({"op": operation, "workspace": self.name, "epoch": epoch, **more})
            except HostDiedError:
                with self._moving:
                    if self._slot is slot:
                        self._leave()

    def open(self) -> Self:
        """Open the workspace on a host now; otherwise the first call does it."""
        self._place()
        return self

    # ── calls ──

    def _make(self, dialect: str, tool: str, params: Any, call_id: str | None) -> Json:
        call_id = call_id or f"#{next(self._numbers)}"
        entry = {"id": call_id, "dialect": dialect, "tool": tool, "params": params}

        def make() -> Json:
            answer: Json = self.ask("call", **entry)
            self._logged([{**entry, "answer": answer}])
            return answer

        self._fleet.count_calls(1)
        return self._record.once(call_id, request_digest(dialect, tool, params, {}), make)

    def calls(self, calls: Sequence[tuple[str, str, Any]]) -> "list[ToolResult]":
        """Run several calls in one message, one after the other: dialect, tool and parameters of each."""
        if len(calls) > CALL_BATCH:
            return [*self.calls(calls[:CALL_BATCH]), *self.calls(calls[CALL_BATCH:])]
        entries = [
            {"id": f"#{next(self._numbers)}", "dialect": dialect, "tool": tool, "params": params}
            for dialect, tool, params in calls
        ]
        self._fleet.count_calls(len(entries))
        answers: list[Json] = self.ask("calls", calls=entries)
        self._logged([{**entry, "answer": answer} for entry, answer in zip(entries, answers, strict=True)])
        return [result_of(each) for each in answers]

    def _logged(self, entries: list[Json]) -> None:
        due = 0
        for entry in entries:
            due = self._ledger.log(entry)
        if self._fleet.checkpoint and due >= self._fleet.checkpoint and self._saving.acquire(blocking=False):
            try:
                self._save(wait=False)
            except UnsavableError:
                pass  # the calls since the last state are made again if the host dies
            finally:
                self._saving.release()

    def _save(self, *, wait: bool) -> Json:
        """Save the state on the fleet's side."""
        saved: Json = self.ask("save", wait=wait)
        self._ledger.save(saved)
        return saved

    # ── copies ──

    def snapshot(self) -> FleetSnapshot:
        """Save the state, outside the host. Raises UnsavableError while a program of the workspace runs."""
        with self._saving:
            saved = self._save(wait=True)
        return FleetSnapshot(saved["id"], self._ledger.tree, saved)

    def fork(self, n: int) -> "list[FleetWorkspace]":
        """Return `n` workspaces that begin with the present state, on the same host if it has room."""
        snapshot = self.snapshot()
        return [self._fleet.open(snapshot, **self._settings) for _ in range(n)]

    # ── the end ──

    def close(self) -> None:
        """End everything that runs in the workspace, and delete it."""
        with self._moving:
            if self._closed:
                return
            self._closed = True
            slot = self._slot
            if slot is not None and slot.alive:
                _quietly(lambda: slot.ask({"op": "close", "workspace": self.name, "epoch": self._ledger.epoch}))
            self._leave()
        self._fleet.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FleetWorkspace {self.name}{', closed' if self._closed else ''}>"


def _quietly(act: Callable[[], object]) -> None:
    """Run a function, and ignore its failure if the host is gone."""
    try:
        act()
    except HostDiedError:
        return
