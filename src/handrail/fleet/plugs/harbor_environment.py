"""Offers workspaces of a fleet to Harbor: tasks whose tools are on the node run in them, without a container.

Name the class in a job: `import_path: handrail.fleet.plugs.harbor_environment:HandrailEnvironment`.
"""

import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

from handrail.fleet.plugs.bridge import Bridge, returncode, threaded
from handrail.kernel.fleet.run_files import exists, read_bytes, write_bytes

if TYPE_CHECKING:
    from pathlib import Path  # noqa: TID251  for a type

_PLACES = ("/tests", "/solution")
_HOW = "make /logs, /tests and /solution on the node, and name them under `writable` in the settings of the fleet"
_EMPTY = 'for each in {}; do mkdir -p "$each" && find "$each" -mindepth 1 -delete || exit 1; done'
_FILES = "files"
"""The directory that the workspace of a task begins with, next to the definition of the environment."""


class HandrailEnvironment(BaseEnvironment):
    """Holds the workspace of one trial. `fleet` in the options of the environment holds the options of `Fleet`."""

    def __init__(self, *arguments: Any, fleet: dict[str, Any] | None = None, **options: Any) -> None:
        self._fleet = fleet or {}
        self._bridge: Bridge | None = None
        super().__init__(*arguments, **options)

    @staticmethod
    def type() -> str:
        return "handrail"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self) -> None:
        if getattr(self.task_env_config, "docker_image", None):
            raise ValueError("the task needs a container image, and a workspace has none")

    def _opened(self) -> Bridge:
        if self._bridge is None:
            raise RuntimeError("the environment is not started")
        return self._bridge

    async def start(self, force_build: bool) -> None:
        """Open the workspace, and empty the directories of a trial, which another workspace may have used before."""
        del force_build
        place = f"{self.environment_dir}/{_FILES}"
        self._bridge = await threaded(partial(Bridge.open, place if exists(place) else None, self._fleet))
        if wanted := self._mount_targets(writable_only=True):
            done = await self.exec(_EMPTY.format(" ".join(map(shlex.quote, (*wanted, *_PLACES)))))
            if done.return_code:
                await self.stop(delete=True)
                raise RuntimeError(f"the workspace cannot have the directories of a trial: {done.stderr}; {_HOW}")

    async def stop(self, delete: bool) -> None:
        """Close the workspace, which deletes it."""
        del delete
        bridge, self._bridge = self._bridge, None
        if bridge is not None:
            await threaded(partial(bridge.close))

    async def upload_file(self, source_path: "Path | str", target_path: str) -> None:
        await threaded(partial(self._opened().write, target_path, read_bytes(str(source_path))))

    async def upload_dir(self, source_dir: "Path | str", target_dir: str) -> None:
        """Copy a directory; one outside the root travels as an archive."""
        await threaded(partial(self._opened().upload_tree, str(source_dir), target_dir))

    async def download_file(self, source_path: str, target_path: "Path | str") -> None:
        write_bytes(str(target_path), await threaded(partial(self._opened().read, source_path)))

    async def download_dir(self, source_dir: str, target_dir: "Path | str") -> None:
        await threaded(partial(self._opened().download_tree, source_dir, str(target_dir)))

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command. A time limit ends it with 124, as `timeout` does."""
        given = {"cwd": cwd, "env": self._merge_env(env), "timeout": timeout_sec, "user": self._resolve_user(user)}
        try:
            done = await threaded(partial(self._opened().run, ["/bin/bash", "-c", command], **given))
        except TimeoutError as error:
            return ExecResult(stdout="", stderr=str(error), return_code=124)
        stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return ExecResult(stdout=stdout, stderr=stderr, return_code=returncode(done))
