"""Gives all plugs what they share: one fleet for each process, and programs and bytes also outside the root.

Harnesses name paths such as `/tmp/x`. Outside the root a path is one of the sandbox, which has a `/tmp` of its own, and
programs read and write there.
"""

import atexit
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.errors import CallError, DeniedError
from handrail.fleet.fleet import Fleet
from handrail.fleet.fleet_workspace import FleetWorkspace
from handrail.library.raw_access import ExecResult

if TYPE_CHECKING:
    from functools import partial

T = TypeVar("T")
NOT_FOUND = 127
"""The exit code of shells for a program that cannot be started."""
_OUTSIDE = "path_outside_workspace"
_EXCEPTIONS: dict[str, type[OSError]] = {"file_not_found": FileNotFoundError, "is_directory": IsADirectoryError}
_SIGNALS = 128
_STAGE = ".handrail-stage"
"""Where directories lie on their way between this machine and a place outside the root."""


class SharedFleets:
    """Keeps one fleet for each set of options, until the process ends."""

    def __init__(self) -> None:
        self._fleets: dict[str, Fleet] = {}
        self._trees: dict[tuple[str, str | None], str] = {}
        self._lock = threading.Lock()
        self._asked = False

    def open(self, tree: str | None, options: Mapping[str, Any]) -> FleetWorkspace:
        """Open a workspace of a directory, or an empty one, in the fleet with these options."""
        key = json.dumps(dict(options), sort_keys=True)
        with self._lock:
            if not self._asked:
                self._asked = True
                atexit.register(self.close)
            if key not in self._fleets:
                self._fleets[key] = Fleet(**options)
            fleet = self._fleets[key]
            if (key, tree) not in self._trees:
                self._trees[key, tree] = fleet.empty_tree() if tree is None else fleet.tree(tree)
        return fleet.open(self._trees[key, tree])

    def close(self) -> None:
        """Close all fleets."""
        with self._lock:
            fleets, self._fleets = [*self._fleets.values()], {}
            self._trees.clear()
        for each in fleets:
            each.close()


FLEETS = SharedFleets()


class Bridge:
    """Runs programs and moves bytes in one workspace."""

    def __init__(self, workspace: FleetWorkspace) -> None:
        self.workspace = workspace

    @classmethod
    def open(cls, tree: str | None, options: Mapping[str, Any]) -> "Bridge":
        """Open a workspace in a fleet of this process."""
        return cls(FLEETS.open(tree, options))

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a program. One that cannot be started ends with 127. Raises TimeoutError and PermissionError."""
        try:
            done = self._run(argv, stdin=stdin, cwd=cwd, env=env, timeout=timeout, user=user)
        except CallError as error:
            if error.code == "command_not_started" and "EACCES" not in error.message:
                return ExecResult(b"", f"{error.message}\n".encode(), NOT_FOUND, None, timed_out=False)
            raise _exception(error) from error
        except DeniedError as error:
            raise PermissionError(str(error)) from error
        if done.timed_out:
            raise TimeoutError(f"the command took longer than {timeout:g} seconds")
        return done

    def _run(self, argv: Sequence[str], *, cwd: str | None, **options: Any) -> ExecResult:
        try:
            return self.workspace.exec(argv, cwd=cwd, **options)
        except CallError as error:
            if error.code != _OUTSIDE or cwd is None:
                raise
        there = ["/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", cwd, *argv]
        return self.workspace.exec(there, **options)

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError, IsADirectoryError and PermissionError."""
        try:
            return self.workspace.read_bytes(path)
        except CallError as error:
            if error.code != _OUTSIDE:
                raise _exception(error) from error
        done = self.workspace.exec(["/bin/sh", "-c", 'test ! -d "$1" || exit 21; exec cat -- "$1"', "sh", path])
        if done.exit_code == 21:
            raise IsADirectoryError(f"{path} is a directory")
        if not done.ok or done.truncated:
            raise FileNotFoundError(f"{path}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def write(self, path: str, data: bytes) -> None:
        """Write a file, and make its directories. Raises IsADirectoryError and PermissionError."""
        try:
            self.workspace.write_bytes(path, data)
        except CallError as error:
            if error.code != _OUTSIDE:
                raise _exception(error) from error
        except DeniedError as error:
            raise PermissionError(str(error)) from error
        else:
            return
        script = 'test ! -d "$1" || exit 21; mkdir -p -- "$(dirname -- "$1")" && exec cat > "$1"'
        done = self.workspace.exec(["/bin/sh", "-c", script, "sh", path], stdin=data)
        if done.exit_code == 21:
            raise IsADirectoryError(f"{path} is a directory")
        if not done.ok:
            raise PermissionError(f"{path}: {done.stderr.decode(errors='replace').strip()}")

    def upload_tree(self, source: str, path: str) -> None:
        """Copy a directory of this machine into the workspace, or to a place of the sandbox outside its root."""
        try:
            self.workspace.upload(source, path)
        except CallError as error:
            if error.code != _OUTSIDE:
                raise _exception(error) from error
        else:
            return
        self.workspace.upload(source, _STAGE)
        self._moved('mkdir -p -- "$2" && cp -R -- "$1/." "$2"; code=$?; rm -r -- "$1"; exit "$code"', _STAGE, path)

    def download_tree(self, path: str, target: str) -> None:
        """Copy a directory of the workspace, or of the sandbox, to this machine."""
        try:
            self.workspace.download(path, target)
        except CallError as error:
            if error.code != _OUTSIDE:
                raise _exception(error) from error
        else:
            return
        self._moved('cp -R -- "$1" "$2"', path, _STAGE)
        try:
            self.workspace.download(_STAGE, target)
        finally:
            self._moved('rm -r -- "$1"', _STAGE)

    def _moved(self, script: str, *arguments: str) -> None:
        done = self.workspace.exec(["/bin/sh", "-c", script, "sh", *arguments])
        if not done.ok:
            raise PermissionError(done.stderr.decode(errors="replace").strip())

    def close(self) -> None:
        """Close the workspace."""
        self.workspace.close()


def returncode(done: ExecResult) -> int:
    """Return the exit code as shells give it."""
    return done.exit_code if done.exit_code is not None else _SIGNALS + (done.signal or 0)


async def threaded(act: "partial[T]") -> T:
    """Run a function in a thread, so that the harness continues."""
    import anyio  # noqa: PLC0415  only asynchronous harnesses need it

    return await anyio.to_thread.run_sync(act)


def _exception(error: CallError) -> OSError:
    return _EXCEPTIONS.get(error.code, PermissionError)(str(error))
