"""Offers workspaces of a fleet to NeMo Gym, as a sandbox provider (entry points `nemo_gym.sandbox_providers`)."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from nemo_gym.sandbox.providers.base import SandboxCreateError, SandboxExecResult, SandboxHandle, SandboxStatus

from handrail.errors import HandrailError
from handrail.fleet.plugs.bridge import Bridge, returncode, threaded
from handrail.kernel.fleet.run_files import read_bytes, write_bytes

if TYPE_CHECKING:
    from pathlib import Path  # noqa: TID251  for a type

    from nemo_gym.sandbox.providers.base import SandboxSpec


class HandrailProvider:
    """Holds the workspaces that it made. `tree` and the options of `Fleet` come from the provider's configuration."""

    name = "handrail"

    def __init__(self, tree: str | None = None, **options: Any) -> None:
        self._tree, self._options = tree, options
        self._open: set[str] = set()

    async def create(self, spec: "SandboxSpec") -> SandboxHandle:
        """Open a workspace. `tree` in the provider's options of the request names another tree."""
        if spec.image is not None:
            raise SandboxCreateError("a workspace has no image: its commands use the programs of the node")
        tree = spec.provider_options.get("tree", self._tree)
        try:
            bridge = await threaded(partial(Bridge.open, tree, self._options))
            for path, content in spec.files.items():
                await threaded(partial(bridge.write, path, content.encode()))
        except (HandrailError, OSError) as error:
            raise SandboxCreateError(str(error)) from error
        self._open.add(bridge.workspace.name)
        return SandboxHandle(bridge.workspace.name, self.name, (bridge, dict(spec.env), spec.workdir))

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a command."""
        bridge, common, workdir = handle.raw
        given = {"cwd": cwd or workdir, "env": {**common, **(env or {})}, "timeout": timeout_s, "user": user}
        try:
            done = await threaded(partial(bridge.run, ["/bin/bash", "-c", command], **given))
        except TimeoutError as error:
            return SandboxExecResult("", str(error), 124, "timeout")
        except (HandrailError, OSError) as error:
            return SandboxExecResult("", str(error), 1, "sandbox")
        stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return SandboxExecResult(stdout, stderr, returncode(done))

    async def upload_file(self, handle: SandboxHandle, source_path: "Path", target_path: str) -> None:
        """Copy a file of this machine into the workspace."""
        await threaded(partial(handle.raw[0].write, target_path, read_bytes(str(source_path))))

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: "Path") -> None:
        """Copy a file of the workspace to this machine."""
        write_bytes(str(target_path), await threaded(partial(handle.raw[0].read, source_path)))

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        return SandboxStatus.RUNNING if handle.sandbox_id in self._open else SandboxStatus.STOPPED

    async def close(self, handle: SandboxHandle) -> None:
        """Close a workspace."""
        self._open.discard(handle.sandbox_id)
        await threaded(partial(handle.raw[0].close))

    async def aclose(self) -> None:
        """Leave the fleet open: other providers of the process use it, and it ends with the process."""
