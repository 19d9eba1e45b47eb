"""Runs episodes in the host of their workspace: functions of the user, which get a workspace and a task."""

import importlib
import importlib.util
import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from handrail.errors import HandrailError
from handrail.fleet.calling_workspace import CallingWorkspace
from handrail.fleet.fleet_errors import DivergedError, EpisodeError, FleetError
from handrail.kernel.fleet.host_place import process_id

if TYPE_CHECKING:
    from handrail.fleet.held_workspace import HeldWorkspace
    from handrail.workspace import Workspace

Json = dict[str, Any]


class EpisodeServices(Protocol):
    """Offers what an episode needs of its host."""

    def called(self, held: "HeldWorkspace") -> None:
        """Note that the episode has made a call: the workspace may be due to be saved."""

    def fork(self, held: "HeldWorkspace", n: int) -> "list[HeldWorkspace]":
        """Fork a workspace."""


Episode = Callable[["EpisodeWorkspace", Json], Any]


class EpisodeWorkspace(CallingWorkspace):
    """Gives an episode its workspace. Each call has an id (its number if the episode gives none) and is made once.

    After its host died the episode runs again from its beginning, on the restored workspace: calls that were made
    before are answered from the record. An episode that makes other calls than before has diverged, and begins again.
    """

    def __init__(self, held: "HeldWorkspace", notes: Json, services: "EpisodeServices") -> None:
        self._held, self._notes, self._services = held, notes, services
        self._number, self._numbering = 0, threading.Lock()
        self.diverged: DivergedError | None = None
        self._process = process_id()

    @property
    def call_count(self) -> int:
        """How many calls the episode has made here, those from the record included."""
        return self._number

    @property
    def root(self) -> str:
        """The directory in which the tools work."""
        return self._held.root

    @property
    def workspace(self) -> "Workspace":
        """The workspace itself. Calls on it are not recorded: after the death of a host they are made again."""
        return self._held.workspace

    def _make(self, dialect: str, tool: str, params: Any, call_id: str | None) -> Json:
        if process_id() != self._process:
            raise FleetError("a forked process cannot use the workspace of its episode")
        with self._numbering:
            self._number += 1
            call_id = call_id or f"#{self._number}"
        try:
            answer = self._held.call(dialect, tool, params, call_id, log=True)
        except DivergedError as error:
            self.diverged = error  # the episode may not hide it
            raise
        self._services.called(self._held)
        return answer

    def note(self, name: str, value: Any) -> None:
        """Keep a JSON value outside the host. After the death of the host `noted` returns the last one."""
        self._notes[name] = value
        self._held.tell_note(name, value)

    def noted(self, name: str) -> Any:
        """Return the last value of a note; None if there is none."""
        return self._notes.get(name)

    def fork(self, n: int) -> "list[EpisodeWorkspace]":
        """Return `n` workspaces that begin with the present state. They end with the episode.

        An episode that has forked begins again from the start if its host dies.
        """
        return [EpisodeWorkspace(held, {}, self._services) for held in self._services.fork(self._held, n)]


def episode_name(episode: str | Episode) -> tuple[str, list[str]]:
    """Return the name by which hosts import an episode, and the directories that they need for that."""
    if isinstance(episode, str):
        if episode.count(":") != 1 or not all(episode.split(":")):
            raise FleetError(f"{episode} does not name an episode", "Write module:function")
        name = episode
    else:
        name = f"{episode.__module__}:{episode.__qualname__}"
        if episode.__module__ == "__main__" or "<locals>" in name:
            raise FleetError(f"hosts cannot import {name}", "Put the episode at the top level of a module of its own")
    return name, [_home_of(name.partition(":")[0])]


def _home_of(module: str) -> str:
    """Return the directory from which Python imports a module."""
    top = module.partition(".")[0]
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise FleetError(f"the module {module} cannot be imported", "Is its directory on the search path of Python?")
    place = found.origin if found.submodule_search_locations is None else next(iter(found.submodule_search_locations))
    return str(place).rpartition("/")[0]


def import_episode(name: str, search_path: list[str]) -> Episode:
    """Return the function with this name. Raises EpisodeError."""
    for directory in search_path:
        if directory not in sys.path:
            sys.path.append(directory)
    module, _, function = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise EpisodeError(f"the episode {name} cannot be imported: {error}") from error
    if not callable(found):
        raise EpisodeError(f"the episode {name} is not a function")
    return found  # type: ignore[no-any-return]  # checked above


def run_episode(episode: Episode, workspace: EpisodeWorkspace, task: Json) -> Any:
    """Run an episode; return its result, which must be JSON. Raises EpisodeError, or the error of the fleet."""
    try:
        value = episode(workspace, task)
        return json.loads(json.dumps(value))
    except FleetError:
        raise
    except Exception as error:
        told = str(error) if isinstance(error, HandrailError) else f"{type(error).__name__}: {error}"
        where = "".join(traceback.format_exception(error)[-4:])
        raise EpisodeError(told, where) from error
