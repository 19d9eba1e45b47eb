"""Offers a workspace of a fleet to the SDK of OpenHands: `HandrailWorkspace(tree="path")`."""

from typing import TYPE_CHECKING, Any

from openhands.sdk.git.models import GitChange, GitChangeStatus, GitDiff
from openhands.sdk.workspace.base import BaseWorkspace
from openhands.sdk.workspace.models import CommandResult, FileOperationResult
from pydantic import Field, PrivateAttr

from handrail.fleet.plugs.bridge import Bridge, returncode
from handrail.kernel.fleet.run_files import read_bytes, write_bytes

if TYPE_CHECKING:
    from pathlib import Path  # noqa: TID251  for a type

_STATUS = {"A": "ADDED", "?": "ADDED", "D": "DELETED", "R": "MOVED"}


class HandrailWorkspace(BaseWorkspace):
    """Holds a workspace of a fleet, which opens at its first use."""

    working_dir: str = "."
    tree: str | None = Field(default=None, description="The directory that the workspace begins with.")
    fleet: dict[str, Any] = Field(default_factory=dict, description="The options of the fleet.")
    _bridge: Bridge | None = PrivateAttr(default=None)

    def _opened(self) -> Bridge:
        if self._bridge is None:
            self._bridge = Bridge.open(self.tree, self.fleet)
        return self._bridge

    def __exit__(self, *_: object) -> None:
        if self._bridge is not None:
            self._bridge.close()

    def execute_command(self, command: str, cwd: "str | Path | None" = None, timeout: float = 30.0) -> CommandResult:
        """Run a command of bash."""
        place = str(cwd) if cwd is not None else self.working_dir
        try:
            done = self._opened().run(["/bin/bash", "-c", command], cwd=place, timeout=timeout)
        except TimeoutError as error:
            return CommandResult(command=command, exit_code=-1, stdout="", stderr=str(error), timeout_occurred=True)
        stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        code = returncode(done)
        return CommandResult(command=command, exit_code=code, stdout=stdout, stderr=stderr, timeout_occurred=False)

    def file_upload(self, source_path: "str | Path", destination_path: "str | Path") -> FileOperationResult:
        """Copy a file of this machine into the workspace."""
        data = read_bytes(str(source_path))
        self._opened().write(str(destination_path), data)
        return _copied(source_path, destination_path, data)

    def file_download(self, source_path: "str | Path", destination_path: "str | Path") -> FileOperationResult:
        """Copy a file of the workspace to this machine."""
        data = self._opened().read(str(source_path))
        write_bytes(str(destination_path), data)
        return _copied(source_path, destination_path, data)

    def git_changes(self, path: "str | Path") -> list[GitChange]:
        """Return what git sees as changed in a repository."""
        words = self._git(str(path), "status", "--porcelain", "-z", "--untracked-files=all").split("\0")
        found, rest = [], iter(words)
        for word in rest:
            if not word:
                continue
            kind = word[:2].strip()[:1]
            if kind == "R":
                next(rest, None)  # the name before
            found.append(GitChange(status=GitChangeStatus[_STATUS.get(kind, "UPDATED")], path=word[3:]))
        return found

    def git_diff(self, path: "str | Path") -> GitDiff:
        """Return a file as it is, and as it was in the last commit; None where there is none."""
        directory, _, name = str(path).rpartition("/")
        before = self._opened().run(["git", "show", f"HEAD:./{name}"], cwd=directory or None)
        try:
            now = self._opened().read(str(path)).decode(errors="replace")
        except FileNotFoundError:
            now = None
        return GitDiff(modified=now, original=before.stdout.decode(errors="replace") if before.ok else None)

    def _git(self, cwd: str, *words: str) -> str:
        done = self._opened().run(["git", *words], cwd=cwd)
        if not done.ok:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="surrogateescape")

    def pause(self) -> None:
        """Do nothing: a workspace uses no processor while it waits."""

    def resume(self) -> None:
        """Do nothing."""


def _copied(source: object, target: object, data: bytes) -> FileOperationResult:
    return FileOperationResult(success=True, source_path=str(source), destination_path=str(target), file_size=len(data))
