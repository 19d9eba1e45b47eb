"""Offers workspaces of a fleet to SWE-ReX and what builds on it, such as SWE-agent: a runtime and a deployment.

A session keeps directory, variables and functions from command to command. They lie in this process, not in a shell
that waits, so a session survives the death of a host.
"""

import logging
import secrets
from functools import partial
from typing import Any

from swerex.deployment.abstract import AbstractDeployment
from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
from swerex.exceptions import (
    CommandTimeoutError,
    DeploymentNotStartedError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
)
from swerex.runtime.abstract import (
    AbstractRuntime,
    Action,
    BashAction,
    BashObservation,
    CloseBashSessionResponse,
    CloseResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    Command,
    CommandResponse,
    CreateBashSessionResponse,
    CreateSessionRequest,
    CreateSessionResponse,
    IsAliveResponse,
    Observation,
    ReadFileRequest,
    ReadFileResponse,
    UploadRequest,
    UploadResponse,
    WriteFileRequest,
    WriteFileResponse,
)

from handrail.fleet.plugs.bridge import Bridge, returncode, threaded

_READ_ONLY = "BASHOPTS|BASH_[A-Z]*|EUID|PPID|SHELLOPTS|UID|_|FUNCNAME|DIRSTACK|GROUPS|PIPESTATUS|__handrail_code"
_SCRIPT = r"""exec 2>&1
{state}
__handrail_keep() {{
  __handrail_code=$?
  trap - EXIT
  unset -f __handrail_keep
  printf '%s %d\n' {mark} "$__handrail_code"
  printf 'cd -- %q\n' "$PWD"
  declare -p | grep -vE '^declare -[-a-zA-Z]*r|^declare -[-a-zA-Z]+ ({read_only})(=|$)'
  declare -f
  exit "$__handrail_code"
}}
trap __handrail_keep EXIT
eval "$(cat <<'{mark}'
{command}
{mark}
)" < /dev/null
"""


class HandrailRuntime(AbstractRuntime):
    """Works in one workspace."""

    def __init__(self, bridge: Bridge) -> None:
        self.logger = logging.getLogger(__name__)
        self._bridge = bridge
        self._sessions: dict[str, str] = {}

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:  # noqa: ASYNC109  the name is theirs
        del timeout
        done = await threaded(partial(self._bridge.run, ["true"]))
        return IsAliveResponse(is_alive=done.ok, message=done.stderr.decode(errors="replace"))

    # ── sessions ──

    async def create_session(self, request: CreateSessionRequest) -> CreateSessionResponse:
        """Open a session, and read its start files."""
        if request.session in self._sessions:
            raise SessionExistsError(f"session {request.session} already exists")
        self._sessions[request.session] = ""
        output = ""
        for source in request.startup_source:
            output += (await self._in_session(request.session, f"source {source}", request.startup_timeout + 1))[0]
        return CreateBashSessionResponse(output=output)

    async def run_in_session(self, action: Action) -> Observation:
        """Run a command in a session. Raises NonZeroExitCodeError and CommandTimeoutError, as SWE-ReX does."""
        if action.session not in self._sessions:
            raise SessionDoesNotExistError(f"session {action.session!r} does not exist")
        if not isinstance(action, BashAction):
            return BashObservation(output="", exit_code=0)  # no command waits, so there is nothing to interrupt
        if action.is_interactive_command or action.is_interactive_quit:
            raise NotImplementedError("interactive programs cannot run in a session; use the tool terminal of codex")
        output, code = await self._in_session(action.session, action.command, action.timeout)
        if action.check == "raise" and code:
            message = f"Command {action.command!r} failed with exit code {code}. Here is the output:\n{output!r}"
            raise NonZeroExitCodeError(f"{action.error_msg}: {message}" if action.error_msg else message)
        return BashObservation(output=output, exit_code=None if action.check == "ignore" else code)

    async def _in_session(self, session: str, command: str, seconds: float | None) -> tuple[str, int]:
        """Run a command after what the session remembers; return its output and its exit code."""
        mark = f"handrail-{secrets.token_hex(12)}"
        script = _SCRIPT.format(state=self._sessions[session], command=command, mark=mark, read_only=_READ_ONLY)
        given = partial(self._bridge.run, ["/bin/bash"], stdin=script.encode(), timeout=seconds)
        try:
            done = await threaded(given)
        except TimeoutError as error:
            raise CommandTimeoutError(f"timeout after {seconds} seconds while running command {command!r}") from error
        output, found, kept = done.stdout.decode(errors="replace").partition(f"{mark} ")
        if not found:
            return output, returncode(done)
        code, _, self._sessions[session] = kept.partition("\n")
        return output, int(code)

    async def close_session(self, request: CloseSessionRequest) -> CloseSessionResponse:
        """Forget a session."""
        if self._sessions.pop(request.session, None) is None:
            raise SessionDoesNotExistError(f"session {request.session!r} does not exist")
        return CloseBashSessionResponse()

    # ── programs and files ──

    async def execute(self, command: Command) -> CommandResponse:
        """Run a program outside of every session."""
        words = command.command
        argv = ["/bin/sh", "-c", words if isinstance(words, str) else " ".join(words)] if command.shell else words
        argv = [argv] if isinstance(argv, str) else argv
        if command.merge_output_streams:
            argv = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *argv]
        given = {"cwd": command.cwd, "env": command.env, "timeout": command.timeout}
        try:
            done = await threaded(partial(self._bridge.run, argv, **given))
        except TimeoutError as error:
            raise CommandTimeoutError(f"timeout after {command.timeout} seconds while running {words!r}") from error
        code = returncode(done)
        stdout, stderr = done.stdout.decode(errors="backslashreplace"), done.stderr.decode(errors="backslashreplace")
        if command.check and code:
            message = f"Command {words!r} failed with exit code {code}. Stdout:\n{stdout!r}\nStderr:\n{stderr!r}"
            raise NonZeroExitCodeError(f"{command.error_msg}: {message}" if command.error_msg else message)
        return CommandResponse(stdout=stdout, stderr=stderr, exit_code=code)

    async def read_file(self, request: ReadFileRequest) -> ReadFileResponse:
        data = await threaded(partial(self._bridge.read, request.path))
        return ReadFileResponse(content=data.decode(request.encoding or "utf-8", request.errors or "strict"))

    async def write_file(self, request: WriteFileRequest) -> WriteFileResponse:
        await threaded(partial(self._bridge.write, request.path, request.content.encode()))
        return WriteFileResponse()

    async def upload(self, request: UploadRequest) -> UploadResponse:
        """Copy a file or a directory of this machine into the workspace."""
        await threaded(partial(self._bridge.workspace.upload, request.source_path, request.target_path))
        return UploadResponse()

    async def close(self) -> CloseResponse:
        """Close the workspace."""
        await threaded(partial(self._bridge.close))
        return CloseResponse()


class HandrailDeployment(AbstractDeployment):
    """Opens a workspace of a tree when it starts, and closes it when it stops."""

    def __init__(self, tree: str | None = None, *, logger: logging.Logger | None = None, **options: Any) -> None:
        """`options` are those of `Fleet`."""
        self.logger = logger or logging.getLogger(__name__)
        self._tree, self._options = tree, options
        self._runtime: HandrailRuntime | None = None
        self._hooks = CombinedDeploymentHook()

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:  # noqa: ASYNC109  the name is theirs
        return await self.runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        """Open the workspace."""
        self._hooks.on_custom_step("Opening a workspace")
        self._runtime = HandrailRuntime(await threaded(partial(Bridge.open, self._tree, self._options)))

    async def stop(self) -> None:
        """Close the workspace."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    @property
    def runtime(self) -> AbstractRuntime:
        """The runtime. Raises DeploymentNotStartedError."""
        if self._runtime is None:
            raise DeploymentNotStartedError
        return self._runtime
