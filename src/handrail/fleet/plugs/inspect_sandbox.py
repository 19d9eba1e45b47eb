"""Offers workspaces of a fleet to Inspect: `Task(sandbox=("handrail", "path/of/the/tree"))`, `--sandbox handrail`."""

from functools import partial
from typing import Any, Literal, overload

from inspect_ai.util import ExecResult, SandboxEnvironment, SandboxUserUnsupportedError, sandboxenv
from pydantic import BaseModel

from handrail.fleet.plugs.bridge import FLEETS, Bridge, returncode, threaded


class HandrailSandboxConfig(BaseModel, frozen=True):
    """Says which tree samples begin with, and which fleet holds them."""

    tree: str | None = None
    engine: str = "local"
    hosts: int | None = None
    per_host: int = 64


@sandboxenv(name="handrail")
class HandrailSandbox(SandboxEnvironment):
    """Holds the workspace of one sample."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        return HandrailSandboxConfig(**config)

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        """Open a workspace for a sample."""
        del task_name, metadata
        chosen = config if isinstance(config, HandrailSandboxConfig) else HandrailSandboxConfig(tree=config)
        options = chosen.model_dump(exclude={"tree"})
        return {"default": cls(await threaded(partial(Bridge.open, chosen.tree, options)))}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        """Close the workspace of a sample."""
        del task_name, config, interrupted
        for each in environments.values():
            await threaded(partial(each.as_type(HandrailSandbox)._bridge.close))  # noqa: SLF001  of its own class

    @classmethod
    async def task_cleanup(cls, task_name: str, config: Any, cleanup: bool) -> None:
        """Close the fleets; nothing in them is needed after the task."""
        del task_name, config
        if cleanup:
            await threaded(partial(FLEETS.close))

    async def exec(  # noqa: PLR0913, PLR0917  the parameters are Inspect's
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002  the name is Inspect's
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109  the sandbox enforces it
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a program. Raises TimeoutError."""
        del timeout_retry, concurrency
        given = input.encode() if isinstance(input, str) else input
        options: dict[str, Any] = {"stdin": given, "cwd": cwd, "env": env, "timeout": timeout, "user": user}
        try:
            done = await threaded(partial(self._bridge.run, cmd, **options))
        except PermissionError as error:
            if user is not None and "no user" in str(error):
                raise SandboxUserUnsupportedError(str(error)) from error
            raise
        code = returncode(done)
        return ExecResult(code == 0, code, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file."""
        data = contents.encode() if isinstance(contents, str) else contents
        await threaded(partial(self._bridge.write, file, data))

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Return the content of a file."""
        data = await threaded(partial(self._bridge.read, file))
        return data.decode() if text else data
