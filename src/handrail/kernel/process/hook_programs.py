"""Runs hooks: the user's own programs, outside the sandbox, within bounds.

A hook has the rights of the user, so it must not run a file that an agent can write: `why_refused` finds such files in
its text before each run. A supervisor ends every process that a hook has started.
"""

import os
import re
import shutil
import stat
import threading
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from handrail.kernel.fs.trusted_paths import in_any, resolved
from handrail.kernel.process.runner import Command, Processes
from handrail.kernel.process.shells import BASH
from handrail.kernel.sandbox.levels import Enter
from handrail.kernel.sandbox.sandbox import Sandbox, SandboxSettings
from handrail.model.limits import Limits
from handrail.ops.glob.guarded_names import guarded_place
from handrail.ops.shell.hook_text import read_hook
from handrail.ops.shell.lasting import is_builtin

_OWN = "HANDRAIL_"
_PROJECT = ("CLAUDE_PROJECT_DIR",)
_READ_AT_START = ("BASH_ENV", "ENV", "PYTHONSTARTUP")
"""Variables that name a file to run; a hook runs only what its text says."""

_VERSION = re.compile(r"3\.(\d+)$")
_SAFE_PYTHON = 11
"""The first version of Python 3 that knows PYTHONSAFEPATH."""


class HookEnding(NamedTuple):
    """Holds how a hook ended."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    trouble: str = ""
    """Why its answer does not count: it took too long, or printed too much."""
    cancelled: bool = False


class HookPrograms:
    """Runs the hooks of one session, in the root of its workspace."""

    def __init__(
        self,
        root_fd: int,
        root: str,
        limits: Limits,
        spools: str,
        *,
        agents: tuple[str, ...],
        guarded: tuple[str, ...],
        enter: Enter | None = None,
    ) -> None:
        """`agents` are the directories that commands can write; below a `guarded` name they cannot.

        `enter` is that of a layered workspace: hooks see its view.
        """
        self._root, self._limits, self._agents, self._guarded = root, limits, agents, guarded
        bounded = limits._replace(output_bytes=limits.hook_output_bytes, spool_bytes=0)
        sandbox = Sandbox(root_fd, root, SandboxSettings("off", limits=bounded, enter=enter))
        self._processes = Processes(sandbox, spools)

    def run(
        self, command: str, given: bytes, seconds: float | None, cancel: threading.Event | None = None
    ) -> HookEnding:
        """Run a command of the user with `given` as its input. Raises CommandNotStarted and SandboxUnavailable."""
        limit = self._limits.hook_seconds if seconds is None else seconds
        outcome = self._processes.run(
            Command(
                [BASH, "--noprofile", "--norc", "-c", command],
                environment=self._environment(),
                only_environment=True,
                timeout_seconds=limit,
                stdin=given,
                cancel=cancel,
            )
        )
        trouble = ""
        if outcome.timed_out:
            trouble = f"it took longer than {limit:g} seconds"
        elif outcome.limit:
            trouble = f"it used too much: {outcome.limit}"
        elif outcome.stdout.cut_bytes:
            trouble = f"it printed more than {self._limits.hook_output_bytes} bytes"
        return HookEnding(
            outcome.exit_code, outcome.stdout.head, outcome.stderr.head, trouble, cancelled=outcome.cancelled
        )

    def close(self) -> None:
        """End every process that a hook has left."""
        self._processes.close()

    def why_refused(self, command: str) -> str:
        """Return why a command must not run outside the sandbox; empty if it may."""
        environment = self._environment()
        text = read_hook(command, {name: environment[name] for name in ("HOME", *_PROJECT) if name in environment})
        if not text.clear:
            return "its text does not show which programs it runs; write them into a script outside the workspace"
        if text.runs_workspace:
            return f"{text.runs_workspace} runs what files of the workspace say, and an agent can write them"
        path = environment["PATH"]
        whys = chain(
            (self._why_not_run(program, path) for program in text.programs),
            (self._why_not_coded(program, path) for program in text.coded),
        )
        if why := next(filter(None, whys), ""):
            return why
        agents = (name for name in text.files if self._is_agents_place(self._lexical(name)))
        named = next(chain(agents, filter(self._is_agents_file, text.words)), "")
        return named and f"an agent can write the file {named}"

    def _why_not_run(self, program: str, path: str) -> str:
        if "/" in program:
            place = os.path.join(self._root, program)
            if not os.path.isfile(place):
                return f"{program} is not found, or not a file"
        else:
            if is_builtin(program):
                return ""
            place = shutil.which(program, path=path) or ""
            if not place:
                return f"{program} is not found in the directories of PATH that no agent can write"
        if not self._is_users(place):
            return f"an agent can write the program {program}"
        return "" if os.access(place, os.X_OK) else f"{program} is not executable"

    def _why_not_coded(self, program: str, path: str) -> str:
        """Return why a Python must not get code: before 3.11, it imports modules from the current directory."""
        place = os.path.join(self._root, program) if "/" in program else shutil.which(program, path=path) or ""
        found = _VERSION.search(os.path.basename(os.path.realpath(place)))
        if found and int(found[1]) >= _SAFE_PYTHON:
            return ""
        return f"{program} may import modules of the workspace; write a script outside it, or name a newer Python"

    def _is_agents_file(self, name: str) -> bool:
        """Return whether a word names a file in a directory that an agent can write."""
        place = self._lexical(name)
        try:
            found = os.lstat(place)
        except (OSError, ValueError):  # no such file, or no name of a file
            return False
        return not stat.S_ISDIR(found.st_mode) and not self._is_users(place)

    def _is_agents_place(self, place: str) -> bool:
        """Return whether a path, which need not exist, lies in a directory that an agent can write."""
        reached = any(in_any(each, self._agents) for each in (place, os.path.realpath(place)))
        return reached and not self._is_users(place)

    def _lexical(self, name: str) -> str:
        return os.path.normpath(os.path.join(self._root, name))

    def _is_users(self, place: str) -> bool:
        """Return whether no agent can decide what is at a path: it lies outside, or below a guarded name."""
        if resolved(place, self._agents) is not None:
            return True
        place = os.path.normpath(place)
        if not self._is_guarded(place) or os.path.realpath(os.path.dirname(place)) != os.path.dirname(place):
            return False
        target = os.path.realpath(place)
        return target == place or self._is_guarded(target) or resolved(target, self._agents) is not None

    def _is_guarded(self, place: str) -> bool:
        if not in_any(place, [self._root]):
            return False
        inside = os.path.relpath(place, self._root)
        return guarded_place(inside, self._guarded) in self._guarded

    def _environment(self) -> Mapping[str, str]:
        """Return the user's variables without Handrail's own; PATH has no directory that an agent can write."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OWN) and name not in _READ_AT_START
        }
        entries = [each for each in kept.get("PATH", os.defpath).split(os.pathsep) if self._is_users_directory(each)]
        # PYTHONSAFEPATH: `python -m black` must not import black.py of the workspace.
        safe = {"PATH": os.pathsep.join(entries), "PYTHONSAFEPATH": "1"}
        return kept | safe | dict.fromkeys(_PROJECT, self._root)

    def _is_users_directory(self, entry: str) -> bool:
        missing = not os.path.exists(entry) and not in_any(os.path.realpath(entry), self._agents)
        return os.path.isabs(entry) and (missing or self._is_users(entry))
