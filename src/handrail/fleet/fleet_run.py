"""Runs many tasks and keeps options, results, logs and trajectories in one directory. A stopped run can go on."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from handrail.errors import HandrailError
from handrail.fleet import agent_episode
from handrail.fleet.episode_runs import Done
from handrail.fleet.fleet import Fleet
from handrail.fleet.fleet_errors import FleetError
from handrail.kernel.fleet import run_files
from handrail.model.fleet_limits import STATUS_SECONDS

Json = dict[str, Any]


class FleetOptions(NamedTuple):
    """Holds what the user chose for a run; its directory keeps it."""

    tasks: str
    engine: str = "local"
    agent: str | None = None
    """The episode as `package:function`; without one, Handrail's agent works with each of the models."""
    models: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    tries: int = 1
    retries: int = 0
    tree: str | None = None
    check: str | None = None
    base_url: str | None = None
    budget: Json = {}  # noqa: RUF012  never changed
    hosts: int | None = None
    per_host: int = 64
    sandbox: str = "strict"
    checkpoint_calls: int = 10
    engine_options: Json = {}  # noqa: RUF012  never changed


class FleetRun:
    """Reads and writes the directory of one run."""

    def __init__(self, directory: str) -> None:
        self.directory = run_files.absolute(directory)
        self.results_file = f"{self.directory}/results.jsonl"

    @classmethod
    def new(cls, directory: str, options: FleetOptions) -> "FleetRun":
        """Make the directory of a new run. Raises FleetError if there is one, or if a task is not valid."""
        tasks = [*_expanded(options)]
        if not tasks:
            raise FleetError(f"{options.tasks} has no task")
        run = cls(directory)
        try:
            about = run._file("run.json")
            lock = run_files.lock_run(run.directory)
        except OSError as error:
            raise FleetError(f"{directory} cannot be used: {error.strerror}") from None
        if lock is None:
            raise FleetError(f"another process works on {directory}")
        try:
            if run_files.exists(about):
                raise FleetError(f"{directory} has a run already", f"Continue with handrail fleet resume {directory}")
            run_files.replace_lines(run._file("tasks.jsonl"), tasks)
            run_files.replace_json(about, options._asdict())
        except OSError as error:
            raise FleetError(f"{directory} cannot be written: {error.strerror}") from None
        finally:
            run_files.unlock(lock)
        return run

    def _file(self, *parts: str) -> str:
        return run_files.run_place(self.directory, *parts)

    @property
    def options(self) -> FleetOptions:
        """The options of the run. Raises FleetError if the directory has none."""
        found = run_files.read_json(f"{self.directory}/run.json")
        if not isinstance(found, dict) or not found.keys() <= {*FleetOptions._fields}:
            raise FleetError(f"{self.directory} has no run")
        return FleetOptions(**found)

    def tasks(self) -> list[Json]:
        """Return all tasks of the run."""
        return [*run_files.read_lines(f"{self.directory}/tasks.jsonl")]

    def results(self) -> list[Json]:
        """Return the results so far."""
        return [*run_files.read_lines(self.results_file)]

    def log_file(self, task: str) -> str:
        """Return the file with the calls of a task."""
        return self._file("logs", f"{run_files.file_name(task)}.jsonl")

    def trajectory_file(self, task: str) -> str:
        """Return the file with the trajectory of a task."""
        return self._file("trajectories", f"{run_files.file_name(task)}.json")

    def status(self) -> Json:
        """Return how far the run is; `running` says whether a process works on it."""
        found = run_files.read_json(f"{self.directory}/status.json") or {}
        if (lock := run_files.lock_run(self.directory)) is not None:
            run_files.unlock(lock)
            found |= {"running": 0, "hosts": []}
        results = self.results()
        failed = sum(not each["ok"] for each in results)
        return {
            **found,
            "tasks": len(self.tasks()),
            "done": len(results),
            "failed": failed,
            "alive": lock is None,
        }

    # ── working ──

    def execute(self, show: Callable[[Json], None]) -> Json:
        """Run the tasks that have no result, and tell the progress from time to time. Returns the last status."""
        lock = run_files.lock_run(self.directory)
        if lock is None:
            raise FleetError(f"another process works on {self.directory}")
        try:
            return _RunWork(self, show).work()
        finally:
            run_files.unlock(lock)


class _RunWork:
    """Holds the work of one process on a run."""

    def __init__(self, run: FleetRun, show: Callable[[Json], None]) -> None:
        self._run, self._show = run, show
        self._began = time.monotonic()
        finished = run.results()
        self._finished = {each["task"] for each in finished}
        self._count = {"done": len(finished), "failed": sum(not each["ok"] for each in finished), "retried": 0}
        self._cost = sum(each.get("cost") or 0 for each in finished)
        self._total = len(run.tasks())
        self._running: set[str] = set()
        self._trees: dict[str | None, str] = {}
        self._stopping = threading.Event()

    def work(self) -> Json:
        """Do all open tasks in a fleet and return the last status."""
        options = self._run.options
        with Fleet(
            options.engine,
            hosts=options.hosts,
            per_host=options.per_host,
            sandbox=options.sandbox,
            checkpoint_calls=options.checkpoint_calls,
            **options.engine_options,
        ) as fleet:
            teller = threading.Thread(target=self._tell, args=(fleet,), name="handrail-status", daemon=True)
            teller.start()
            try:
                episode = options.agent or agent_episode.NAME
                tasks = self._open_tasks(fleet)
                seconds = options.budget.get("seconds") if options.agent else None  # the agent ends by itself
                for done in fleet.map(episode, tasks, retries=options.retries, seconds=seconds, on_event=self._heard):
                    self._keep(done)
            finally:
                self._stopping.set()
                teller.join()
            status = self._status(fleet)
        self._write(status)
        return status

    def _open_tasks(self, fleet: Fleet) -> Iterator[Json]:
        for task in self._run.tasks():
            if task["id"] in self._finished:
                continue
            try:
                tree = self._tree(fleet, task.get("tree"))
            except (OSError, HandrailError) as error:
                why = f"the tree {task.get('tree')} cannot be packed: {error}"
                self._keep(Done(task, None, why, 1, 0, [], 0, 0.0, ""))
            else:
                yield {**task, "tree": tree}

    def _tree(self, fleet: Fleet, path: str | None) -> str:
        if path not in self._trees:
            self._trees[path] = fleet.empty_tree() if path is None else fleet.tree(path)
        return self._trees[path]

    def _heard(self, event: Json) -> None:
        """Keep what hosts tell in the log of the task."""
        kind, task = event["event"], event["task"]["id"]
        line: Json = {"time": round(time.time(), 3), "event": kind}
        if kind == "began":
            self._running.add(task)
            line |= {"host": event["host"], "epoch": event["epoch"]}
        elif kind == "again":
            self._running.discard(task)
            self._count["retried"] += 1
            line |= {"reason": event["reason"]}
        elif kind == "logged":
            line |= {"event": "call", "epoch": event["epoch"], **event["entry"]}
        elif kind == "saved":
            line |= {"epoch": event["epoch"], "state": event["saved"]["id"]}
        elif kind == "printed":
            line |= {"text": event["text"]}
        else:
            return
        with self._writing():
            run_files.append_line(self._run.log_file(task), line)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Report that the directory cannot be written, such as on a full disk, and how to go on. Raises FleetError."""
        try:
            yield
        except OSError as error:
            place = self._run.directory
            told = f"{place} cannot be written: {error.strerror}"
            raise FleetError(told, f"Make it writable, and go on with handrail fleet resume {place}") from None

    def _keep(self, done: Done) -> None:
        """Write the result of a task: first its trajectory, then its line, which makes it finished."""
        task = done.task["id"]
        value = done.value
        if isinstance(value, dict):
            value = dict(value)
            if (trajectory := value.pop("trajectory", None)) is not None:
                with self._writing():
                    run_files.replace_json(self._run.trajectory_file(task), trajectory)
        told = value if isinstance(value, dict) else {}
        line = {
            "task": task,
            "name": done.task["name"],
            "ok": done.ok,
            "passed": told.get("passed") if done.ok else False,
            "model": done.task.get("model"),
            "dialect": told.get("dialect") or done.task.get("dialect"),
            "seconds": round(done.seconds, 3),
            "calls": done.calls,
            "cost": told.get("cost"),
            "tries": done.tries,
            "deaths": done.deaths,
            "diverged": done.diverged,
            "value": value,
            **({"error": done.error} if done.error else {}),
        }
        with self._writing():
            run_files.append_line(self._run.results_file, line, sync=True)
        self._running.discard(task)
        self._count["done"] += 1
        self._count["failed"] += not done.ok
        self._cost += line["cost"] or 0

    def _tell(self, fleet: Fleet) -> None:
        while not self._stopping.wait(STATUS_SECONDS):
            status = self._status(fleet)
            try:
                self._write(status)
            except FleetError as error:  # the next result that cannot be written ends the run
                self._show({**status, "trouble": str(error)})

    def _status(self, fleet: Fleet) -> Json:
        seconds = time.monotonic() - self._began
        return {
            **self._count,
            "running": len(self._running),
            "tasks": self._total,
            "calls": fleet.calls_made,
            "calls_per_second": round(fleet.calls_made / max(seconds, 0.001), 1),
            "cost": round(self._cost, 6),
            "seconds": round(seconds, 1),
            "hosts": fleet.hosts,
            "host_deaths": fleet.host_deaths,
            "trouble": fleet.trouble(),
            "copied": fleet.copied,
        }

    def _write(self, status: Json) -> None:
        with self._writing():
            run_files.replace_json(run_files.run_place(self._run.directory, "status.json"), status)
        self._show(status)


# ── tasks ──


def _expanded(options: FleetOptions) -> Iterator[Json]:
    """Yield one task for each line, model, dialect and try. Raises FleetError."""
    if options.tree is not None and not run_files.exists(options.tree):
        raise FleetError(f"directory {options.tree} not found")
    seen = set[str]()
    for number, task in enumerate(_lines(options.tasks), 1):
        where = f"{options.tasks}, task {number}"
        name = str(given) if isinstance(given := task.get("id", number), str | int) else ""
        if not name:
            raise FleetError(f"{where}: the id is not a string")
        if not options.agent and not isinstance(task.get("prompt"), str):
            raise FleetError(f"{where} has no prompt")
        tree = task.get("tree", options.tree)
        if tree is not None and not isinstance(tree, str):
            raise FleetError(f"{where}: the tree is not a path")
        beside = options.tasks if "tree" in task else None
        base = {**task, "name": name, "tree": run_files.absolute(tree, beside) if tree is not None else None}
        for made in _variants(base, options):
            if made["id"] in seen:
                raise FleetError(f"{where}: another task has the id {made['id']}")
            seen.add(made["id"])
            yield made


def _variants(base: Json, options: FleetOptions) -> Iterator[Json]:
    models: tuple[str | None, ...] = options.models or (base.get("model"),)
    dialects: tuple[str | None, ...] = options.dialects or (base.get("dialect"),)
    if not options.agent and None in models:
        raise FleetError(f"the task {base['name']} has no model", "Name one with --model")
    for m, model in enumerate(models, 1):
        for dialect in dialects:
            for number in range(1, options.tries + 1):
                parts = [
                    base["name"],
                    *([f"m{m}"] if len(models) > 1 else []),
                    *([dialect] if dialect and len(dialects) > 1 else []),
                ]
                made_id = "@".join(parts) + (f"#{number}" if options.tries > 1 else "")
                made = {**base, "id": made_id, "try": number, "model": model, "dialect": dialect}
                defaults = {"check": options.check, "base_url": options.base_url, "budget": dict(options.budget)}
                yield {
                    **{key: each for key, each in defaults.items() if each},
                    **{k: v for k, v in made.items() if v is not None},
                }


def _lines(path: str) -> Iterator[Json]:
    try:
        text = run_files.read_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise FleetError(f"cannot read {path}: {error}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise FleetError(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise FleetError(f"{path}, line {number} is not an object")
        yield found
