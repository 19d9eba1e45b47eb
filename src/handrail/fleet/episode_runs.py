"""Runs episodes for tasks: where there is room, fair among trees, and again when a host has died."""

import json
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from handrail.errors import HandrailError
from handrail.fleet.episode import Episode, episode_name
from handrail.fleet.fleet_errors import BusyError, DivergedError, EpisodeError, FleetError, HostDiedError
from handrail.fleet.ledger import Ledger
from handrail.model import fleet_limits

if TYPE_CHECKING:
    from handrail.fleet.fleet import Fleet
    from handrail.fleet.pool import HostPool, HostSlot

Json = dict[str, Any]
Listener = Callable[[Json], None]
_AHEAD = 256
"""How many tasks are read before there is room for them: the trees of these get equal shares."""
_WAIT_SECONDS = 0.25


class Done(NamedTuple):
    """Holds the result of one task."""

    task: Json
    value: Any
    """What the episode returned; None if it failed."""
    error: str
    """Why it failed; empty if it did not."""
    tries: int
    """How often it was begun because of an exception of its own."""
    deaths: int
    """How many hosts died under it."""
    diverged: list[Any]
    """What differed when calls were made again on a restored workspace; the episode then began from its start."""
    calls: int
    seconds: float
    """From the first begin to the end."""
    host: str

    @property
    def ok(self) -> bool:
        """True if the episode returned."""
        return not self.error


class _TaskRun:
    """Holds one task until it ends."""

    def __init__(self, task: Json, tree: str) -> None:
        self.task, self.tree, self.ledger = task, tree, Ledger(tree)
        self.tries, self.deaths, self.resets = 1, 0, 0
        self.diverged: list[Any] = []
        self.began = 0.0
        self.host = ""
        self.ends_at = 0.0
        """When its host is ended, because the episode has not ended at its limit."""


class EpisodeRuns:
    """Runs the episodes of some tasks, each until it ends."""

    def __init__(
        self,
        fleet: "Fleet",
        pool: "HostPool",
        episode: str | Episode,
        tree: str | None,
        retries: int,
        seconds: float | None,
        on_event: Listener | None,
    ) -> None:
        self._fleet, self._pool, self._tree, self._retries, self._seconds = fleet, pool, tree, retries, seconds
        self._episode, self._search_path = episode_name(episode)
        self._on_event: Listener = on_event or (lambda _: None)
        self._ended: queue.SimpleQueue[tuple[_TaskRun, HostSlot, Any, HandrailError | None]] = queue.SimpleQueue()
        self._again: deque[_TaskRun] = deque()
        self._waiting: dict[str, deque[_TaskRun]] = {}
        self._running: dict[_TaskRun, tuple[HostSlot, str]] = {}
        self._ending = threading.Lock()
        self._over = False
        self._failure: Exception | None = None
        """What `on_event` raised; the caller of `map` gets it."""

    def run(self, tasks: Iterable[Mapping[str, Any]]) -> Iterator[Done]:
        """Yield the result of each task as soon as the task ends."""
        coming: Iterator[Mapping[str, Any]] | None = iter(tasks)
        try:
            while True:
                coming = self._read(coming)
                self._begin_all()
                if not self._running and not self._waiting and not self._again and coming is None:
                    return
                yield from self._settled()
                if self._failure is not None:
                    raise self._failure
                self._end_late_ones()
        finally:
            self._leave()

    def _leave(self) -> None:
        """Close the workspaces of tasks whose results the caller does not take any more; free their places."""
        with self._ending:
            self._over = True
            while not self._ended.empty():
                run, slot, _, _ = self._ended.get()
                del self._running[run]
                self._pool.give_back(slot)
        for run, (slot, name) in self._running.items():
            self._close(run, slot, name)

    def _read(self, coming: Iterator[Mapping[str, Any]] | None) -> Iterator[Mapping[str, Any]] | None:
        """Read tasks ahead; return the iterator, or None at its end."""
        while coming is not None and sum(map(len, self._waiting.values())) < _AHEAD:
            try:
                task = _as_json(next(coming))
            except StopIteration:
                return None
            tree = task.get("tree", self._tree)
            if not isinstance(tree, str):
                raise FleetError(
                    "a task names no tree",
                    "Give all tasks one with map(…, tree=fleet.tree(path)), or each its own as `tree`",
                )
            self._waiting.setdefault(tree, deque()).append(_TaskRun(task, tree))
        return coming

    # ── beginning ──

    def _begin_all(self) -> None:
        while self._again or self._waiting:
            tree = self._again[0].tree if self._again else self._next_tree()
            slot = self._pool.take(tree, 0 if self._running else None)
            if slot is None:
                return
            run = self._again.popleft() if self._again else self._pop(tree)
            name = self._fleet.new_name()
            self._running[run] = slot, name
            threading.Thread(target=self._begin, args=(run, slot, name), name="handrail-begin", daemon=True).start()

    def _next_tree(self) -> str:
        """Return the tree whose turn it is."""
        return next(iter(self._waiting))

    def _pop(self, tree: str) -> _TaskRun:
        """Take a task of a tree, whose next turn comes after those of all others."""
        runs = self._waiting.pop(tree)
        run = runs.popleft()
        if runs:
            self._waiting[tree] = runs
        return run

    def _begin(self, run: _TaskRun, slot: "HostSlot", name: str) -> None:
        epoch = run.ledger.next_lease()
        run.began, run.host = run.began or time.monotonic(), slot.link.name
        self._fleet.listen(name, partial(self._heard, run))
        self._tell({"event": "began", "task": run.task, "host": slot.link.name, "epoch": epoch})
        request = {
            **run.ledger.request(with_answers=True),
            "op": "episode",
            "workspace": name,
            "episode": self._episode,
            "search_path": self._search_path,
            "task": run.task,
            "settings": self._fleet.settings,
            "checkpoint": self._fleet.checkpoint,
            "most": self._fleet.per_host,
        }

        def reply(value: Any, error: HandrailError | None) -> None:
            self._fleet.listen(name, None)
            if isinstance(error, HostDiedError):
                slot.alive = False
            with self._ending:
                if not self._over:
                    self._ended.put((run, slot, value, error))
                    return
            self._pool.give_back(slot)

        try:
            self._fleet.provide(slot, run.tree)
            if not slot.alive:
                raise HostDiedError("the host died")
        except HandrailError as error:
            reply(None, error)
        except Exception as error:  # noqa: BLE001  whatever kept the tree from the node, the task has failed
            reply(None, FleetError(f"the tree cannot be brought to the node: {type(error).__name__}: {error}"))
        else:
            slot.link.begin(request, reply)
            if self._over:
                self._close(run, slot, name)

    def _close(self, run: _TaskRun, slot: "HostSlot", name: str) -> None:
        """Let a host close the workspace of a task, so that the calls of its episode fail."""
        slot.link.begin({"op": "close", "workspace": name, "epoch": run.ledger.epoch}, lambda _value, _error: None)

    def _heard(self, run: _TaskRun, event: Json) -> None:
        """Record and report an event of a host, unless it comes from an earlier epoch."""
        if run.ledger.take(event):
            if event["event"] == "logged":
                self._fleet.count_calls(1)
            self._tell({**event, "task": run.task})

    def _tell(self, event: Json) -> None:
        """Tell the caller what happened; keep the exception of `on_event` for the thread that takes the results."""
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001  it is raised there
            self._failure = self._failure or error

    # ── ending ──

    def _settled(self) -> Iterator[Done]:
        """Yield the tasks that have ended, after waiting for the next one for a moment."""
        try:
            ended = [self._ended.get(timeout=_WAIT_SECONDS)]
            while not self._ended.empty():
                ended.append(self._ended.get())
        except queue.Empty:
            return
        for run, slot, value, error in ended:
            del self._running[run]
            self._pool.give_back(slot, busy=str(error) if isinstance(error, BusyError) else "")
            if (done := self._judge(run, value, error)) is not None:
                yield done

    def _end_late_ones(self) -> None:
        """Close the workspaces of episodes over their limit, so that their calls fail; then end their hosts."""
        if self._seconds is None:
            return
        now = time.monotonic()
        for run, (slot, name) in [*self._running.items()]:
            if not run.began or now < run.began + self._seconds:
                continue
            if not run.ends_at:
                run.ends_at = now + fleet_limits.GRACE_SECONDS
                self._close(run, slot, name)
            elif now > run.ends_at and slot.alive:
                self._pool.died(slot.link)

    def _judge(self, run: _TaskRun, value: Any, error: HandrailError | None) -> Done | None:
        """Return the end of a task, or None if it runs again."""
        if error is None:
            return self._done(run, value["value"], "", value["calls"])
        if run.ends_at:
            return self._done(run, None, f"the episode took longer than {self._seconds:g} seconds", run.ledger.calls)
        if isinstance(error, BusyError):
            self._again.append(run)
            return None
        if isinstance(error, HostDiedError):
            run.deaths += 1
            again = run.deaths < fleet_limits.DEATHS
        elif isinstance(error, DivergedError):
            run.diverged += error.differences or [[error.message]]
            run.resets += 1
            run.ledger.forget()
            again = run.resets < fleet_limits.DEATHS
        else:
            again = isinstance(error, EpisodeError) and run.tries <= self._retries
            run.tries += again
            run.ledger.forget()
        if again:
            self._tell({"event": "again", "task": run.task, "reason": str(error)})
            self._again.append(run)
            return None
        return self._done(run, None, str(error), run.ledger.calls)

    def _done(self, run: _TaskRun, value: Any, error: str, calls: int) -> Done:
        seconds = time.monotonic() - run.began
        return Done(run.task, value, error, run.tries, run.deaths, run.diverged, calls, seconds, run.host)


def _as_json(task: Any) -> Json:
    """Return a task as its episode gets it: tasks cross to hosts as JSON objects. Raises FleetError."""
    try:
        made = json.loads(json.dumps(dict(task)))
    except (TypeError, ValueError) as error:
        told = f"a task is not a JSON object: {error}"
        raise FleetError(told, "A task is a dictionary of texts, numbers and lists") from None
    return cast("Json", made)
