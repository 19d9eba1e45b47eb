"""Lets programs run commands and move bytes: `exec`, `read_bytes`, `write_bytes`, `upload` and `download`.

Every method is one call, or a few, of the tools in `dialects/raw.py`, and so passes the approver, the rules, the hooks,
the sandbox, the journal, the limits and the log. The methods whose names begin with `a` work in a thread.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.errors import CallError, ClosedError, DeniedError
from handrail.kernel.host.outside_files import files_below, make_directory, read_outside, write_outside
from handrail.model.paths import quote, unquote
from handrail.ops.byte_values import packed, unpacked

if TYPE_CHECKING:
    from os import PathLike  # noqa: TID251  for a type

    from handrail.tools.router import ToolRouter
    from handrail.tools.tool import Dialect, ToolResult

    AnyPath = str | PathLike[str]

_EXCEPTIONS = {"approval_denied": DeniedError, "session_closed": ClosedError}


class ExecResult(NamedTuple):
    """Holds what a program printed, and how it ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    """None if a signal or the time limit ended the program."""
    signal: int | None
    """The number of the signal that ended the program."""
    timed_out: bool
    truncated: bool = False
    """True if a stream was longer than `exec_output_bytes`: then its middle is missing."""
    files: tuple[str, str] = ("", "")
    """The files with the whole of `stdout` and `stderr`, if their middle is missing; commands can read these files."""
    warnings: tuple[str, ...] = ()
    """What Handrail says about the call, such as an access that the sandbox refused."""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """True if the program ended by itself with the code 0."""
        return self.exit_code == 0 and not self.timed_out


class RawAccess:
    """Gives programs the methods of this module. A subclass says which session makes the calls."""

    def tools(self, dialect: "Dialect", /) -> "ToolRouter":
        """Return the tools of a dialect."""
        raise NotImplementedError

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        user: int | str | None = None,
        call_id: str | None = None,
    ) -> ExecResult:
        """Run a program in the sandbox, without a shell, and return what it printed.

        Args:
            argv: The program and its arguments.
            stdin: The input; nothing if None.
            env: Variables in addition to those of the sandbox.
            cwd: The directory, relative to the root or inside it.
            timeout: The time limit in seconds; the limit `command_seconds` if None.
            user: The user inside the sandbox: `root` or 0, or the usual one. It has no more rights than the usual one.
            call_id: How the caller names the call, for the log and the journal.

        Raises:
            DeniedError: The call was not approved.
            CallError: The program could not be started, or a parameter is wrong.

        """
        return _ran(self._raw("exec", _exec_params(argv, stdin, env, cwd, timeout, user), call_id))

    async def aexec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  the sandbox enforces it
        user: int | str | None = None,
        call_id: str | None = None,
    ) -> ExecResult:
        """Run a program like `exec`. Cancelling the task ends the program."""
        params = _exec_params(argv, stdin, env, cwd, timeout, user)
        return _ran(_checked(await self._tools().acall("exec", params, call_id=call_id)))

    def read_bytes(self, path: "AnyPath") -> bytes:
        """Return the content of a file. Raises CallError, with the code of the answer that a model would get."""
        return unpacked("data", self._raw("read_bytes", {"path": _text(path)}).output)

    async def aread_bytes(self, path: "AnyPath") -> bytes:
        """Return the content of a file."""
        return unpacked("data", _checked(await self._tools().acall("read_bytes", {"path": _text(path)})).output)

    def write_bytes(self, path: "AnyPath", data: bytes) -> None:
        """Write a whole file, new or existing, and make missing directories. Raises CallError and DeniedError."""
        self._raw("write_bytes", {"path": _text(path), **packed("data", data)})

    async def awrite_bytes(self, path: "AnyPath", data: bytes) -> None:
        """Write a whole file, new or existing."""
        params = {"path": _text(path), **packed("data", data)}
        _checked(await self._tools().acall("write_bytes", params))

    def upload(self, source: "AnyPath", path: "AnyPath") -> None:
        """Copy a file or a directory of this machine into the workspace, with its permission bits.

        Each file is one change. Links in a directory are not copied. A file goes into a directory whose name ends in a
        slash. Raises OSError if the source cannot be read.
        """
        path = _below(_given(path), _given(source))
        for rel in files_below(_given(source)):
            data, mode = read_outside(_joined(_given(source), rel))
            place = quote(_joined(path, rel))
            self._raw("write_bytes", {"path": place, **packed("data", data), "mode": mode})

    def download(self, path: "AnyPath", target: "AnyPath") -> None:
        """Copy a file or a directory of the workspace to a place on this machine.

        Links are not copied, and a link at the place is replaced, not followed. A file goes into a directory whose name
        ends in a slash. Raises OSError if the target cannot be written.
        """
        tree: Any = self._raw("list_tree", {"path": _text(path)}).output
        if tree["is_file"]:
            target = _below(_given(target), _given(path))
        else:
            for rel in ["", *map(unquote, tree["directories"])]:
                make_directory(_joined(_given(target), rel))
        for rel in [""] if tree["is_file"] else map(unquote, tree["files"]):
            found: Any = self._raw("read_bytes", {"path": quote(_joined(_given(path), rel))}).output
            write_outside(_joined(_given(target), rel), unpacked("data", found), found["mode"])

    async def aupload(self, source: "AnyPath", path: "AnyPath") -> None:
        """Copy a file or a directory of this machine into the workspace."""
        await _in_thread(partial(self.upload, source, path))

    async def adownload(self, path: "AnyPath", target: "AnyPath") -> None:
        """Copy a file or a directory of the workspace to a place on this machine."""
        await _in_thread(partial(self.download, path, target))

    def _tools(self) -> "ToolRouter":
        from handrail.dialects.raw import dialect  # noqa: PLC0415  most callers let a model call tools

        return self.tools(dialect)

    def _raw(self, tool: str, params: dict[str, Any], call_id: str | None = None) -> "ToolResult":
        return _checked(self._tools().call(tool, params, call_id=call_id))


def _checked(result: "ToolResult") -> "ToolResult":
    """Return a result. Raises the exception that its error means."""
    error = result.error
    if error is None:
        return result
    if error.code in _EXCEPTIONS:
        raise _EXCEPTIONS[error.code](error.message, error.suggestion)
    raise CallError(error.message, error.suggestion, code=error.code)


def _exec_params(
    argv: Sequence[str],
    stdin: bytes | None,
    env: Mapping[str, str] | None,
    cwd: str | None,
    timeout: float | None,
    user: int | str | None,
) -> dict[str, Any]:
    params: dict[str, Any] = {"argv": list(argv), **({} if stdin is None else packed("stdin", stdin))}
    if env:
        params["env"] = [f"{name}={value}" for name, value in env.items()]
    if cwd is not None:
        params["cwd"] = cwd
    if timeout is not None:
        params["timeout"] = float(timeout)
    if user is not None:
        params["user"] = str(user)
    return params


def _ran(result: "ToolResult") -> ExecResult:
    from handrail.kernel.process.runner import signal_number  # noqa: PLC0415  a program has run: it is loaded

    found: Any = result.output
    stdout, stderr = unpacked("stdout", found), unpacked("stderr", found)
    name = found["signal"]
    return ExecResult(
        stdout,
        stderr,
        found["exit_code"],
        name and signal_number(name),
        found["timed_out"],
        len(stdout) + len(stderr) < found["stdout_bytes"] + found["stderr_bytes"],
        (found["stdout_file"], found["stderr_file"]),
        tuple(result.warnings),
        found["seconds"],
    )


def _given(path: "AnyPath") -> str:
    return path if isinstance(path, str) else path.__fspath__()


def _text(path: "AnyPath") -> str:
    """Return a path as tools take it: bytes that are no text are escaped."""
    return quote(_given(path))


def _below(place: str, name: str) -> str:
    """Return where a file goes: into a directory whose name ends in a slash, or to the place itself."""
    return place + name.rstrip("/").rpartition("/")[2] if place.endswith("/") else place


def _joined(path: str, rel: str) -> str:
    return f"{path.rstrip('/')}/{rel}" if rel else path


async def _in_thread(work: Callable[[], None]) -> None:
    import anyio  # noqa: PLC0415  only asynchronous callers need it

    await anyio.to_thread.run_sync(work)
