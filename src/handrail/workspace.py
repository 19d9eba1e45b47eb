"""Opens a workspace: a directory that no call leaves, its settings, and routers for the tools of each dialect."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, Self

from handrail.errors import WorkspaceError
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.protected_files import ProtectedFiles
from handrail.kernel.fs.trees import Trees
from handrail.kernel.host.own_places import inside
from handrail.kernel.host.remembered_files import RememberedFiles
from handrail.kernel.host.session_log import warn
from handrail.kernel.host.state_dir import State, config_home, state_home
from handrail.kernel.journal.journal import journal_of
from handrail.kernel.write.writer import Writer
from handrail.library.client_session import ClientSession, Internals
from handrail.library.image_methods import ImageMethods, open_image_layer, refuse_unconfined
from handrail.library.layer_methods import ImagePlace, open_layer
from handrail.library.load_settings import rules_for, settings_for, users_limits, with_directories
from handrail.library.raw_access import RawAccess
from handrail.model.faults import PathFault
from handrail.ops.glob.protected_names import protection
from handrail.runtime.session import Services, Session
from handrail.settings import Settings
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Dialect, ToolResult

if TYPE_CHECKING:
    from os import PathLike  # noqa: TID251  for a type

    from handrail.kernel.layers.copied_layer import CopiedLayer
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer
    from handrail.library.history import History
    from handrail.policy.callback import AnyApprover


class Workspace(RawAccess, ImageMethods):
    """A directory in which tools work. No call leaves it, and nothing changes in it without approval.

    Use it in a `with` or `async with` statement, or close it. Every keyword but `approver` and `tell` is a setting:
    None means that the user's and the project's files, the environment or the default decide (docs/settings.md).

    Args:
        root: The directory; None with an image.
        approver: Decides on calls that change, run or fetch something when the policy is to ask and no rule decides.
            A function, or an async function, from a `Question` to a `Verdict` or a bool. An exception is a refusal.
        tell: Is called with a line for the user that says what would allow a refused call. The model never sees it.
        approve: Who approves: `ask` (the approver), `edit` (only edits go through), `auto` (everything), `never`
            (nothing), `host` (the MCP client).
        preset: One word for the usual choices: `read-only`, `edit` (`approve="edit"`) or `trusted` (`approve="auto"`).
        read_only: Offer no tool that changes, runs or fetches anything.
        sandbox: What confines commands: `strict`, `network` (the same, with network) or `off`.
        network: The only hosts that commands may reach, such as `["github.com", "*.python.org"]`.
        allow_reduced: Run commands with less confinement on a machine that cannot give the level of `sandbox`.
        durability: What a write waits for: `full` (file and directory on disk), `rename`, `log` or `none`.
        journal: Record changes so that they can be undone: `on`, `off`, or `required` (refuse what cannot be recorded).
        log: The file of the session log; in the state directory if not given.
        log_level: `info`, `debug` (whole parameters and outputs) or `off`.
        readable: Directories outside the root that commands may read.
        writable: Directories outside the root that commands may change.
        environment: Variables that commands may see, in addition to PATH, HOME, LANG and TERM.
        guarded: Names in the workspace that no command can change and no rule can approve, instead of the usual ones.
        allow_hosts: Hosts that may be fetched from although their address is not public.
        builtin_search: Search with the built-in engine where there is no ripgrep.
        ignore_files: Leave out of searches what .gitignore and similar files name.
        hints: Show suggestions and warnings to the model, after the output.
        answer_tokens: About how many tokens of output, matches or entries one answer shows; 0 for no bound.
        protect: Globs of files that no tool may reach; `"secrets"` stands for the usual ones.
        telemetry: `otel` describes each call as an OpenTelemetry span, for the exporter that the caller configured.
        telemetry_contents: Put parameters and results into the spans.
        models: Globs of model names, each with a dialect, for `tools_for`; they come before the built-in table.
        hooks: The user's own programs that judge calls or act after them, by event (docs/hooks.md).
        image: Work in a container image instead of a directory: `oci:PATH[:TAG]` or `docker-archive:PATH`. Its changes
            are forgotten at the end, unless `layered` names a layer that keeps them (docs/images.md).
        workdir: The directory of the image that tools see; the one of its configuration if not given.
        layered: Leave the root as it is, and keep all changes in a layer over it: True for the usual layer of this
            root, or the name of another one (docs/layers.md).
        limits: Numbers that differ from the defaults, by name (docs/limits.md).

    Raises:
        WorkspaceError: The root cannot be opened.
        ImageError: The image cannot be used.
        SettingsError: A setting is not valid.
        RuleError: A file with approval rules is not valid.

    """

    def __init__(  # noqa: PLR0913  every setting is spelled out, so that editors and type checkers know it
        self,
        root: "str | PathLike[str] | None" = None,
        *,
        approver: "AnyApprover | None" = None,
        tell: Callable[[str], None] | None = None,
        approve: Literal["auto", "host", "edit", "ask", "never"] | None = None,
        preset: Literal["read-only", "edit", "trusted"] | None = None,
        read_only: bool | None = None,
        sandbox: Literal["off", "network", "strict"] | None = None,
        network: Sequence[str] | None = None,
        allow_reduced: bool | None = None,
        durability: Literal["none", "log", "rename", "full"] | None = None,
        journal: Literal["off", "on", "required"] | None = None,
        log: "str | PathLike[str] | None" = None,
        log_level: Literal["debug", "info", "off"] | None = None,
        readable: Sequence[str] | None = None,
        writable: Sequence[str] | None = None,
        environment: Sequence[str] | None = None,
        guarded: Sequence[str] | None = None,
        allow_hosts: Sequence[str] | None = None,
        builtin_search: bool | None = None,
        ignore_files: bool | None = None,
        hints: bool | None = None,
        answer_tokens: int | None = None,
        protect: Sequence[str] | Literal["secrets"] | None = None,
        models: Mapping[str, str] | None = None,
        telemetry: Literal["otel", "off"] | None = None,
        telemetry_contents: bool | None = None,
        hooks: Mapping[str, Any] | None = None,
        limits: Mapping[str, float] | None = None,
        layered: bool | str = False,
        image: str | None = None,
        workdir: str | None = None,
    ) -> None:
        given = locals()
        settings = {name: given[name] for name in _SETTINGS if given[name] is not None}
        if log is not None:
            settings["log"] = _text(log)
        self._begin(_place(root, image, workdir), settings, approver, tell, layered)

    @classmethod
    def from_settings(
        cls,
        root: "str | PathLike[str] | None",
        settings: Mapping[str, Any],
        *,
        approver: "AnyApprover | None" = None,
        tell: Callable[[str], None] | None = None,
        layered: bool | str = False,
        image: str | None = None,
        workdir: str | None = None,
    ) -> Self:
        """Open a workspace with settings by name, as the caller has loaded them. Raises what the class raises."""
        made = cls.__new__(cls)
        made._begin(_place(root, image, workdir), settings, approver, tell, layered)  # noqa: SLF001  of its own class
        return made

    def _begin(
        self,
        place: str | ImagePlace,
        settings: Mapping[str, Any],
        approver: "AnyApprover | None",
        tell: Callable[[str], None] | None,
        layered: bool | str,
    ) -> None:
        self._tell: Callable[[str], None] = tell or warn
        self._given, self._approver = dict(settings), approver
        self._place = place if isinstance(place, ImagePlace) else None
        with ExitStack() as opened:
            if isinstance(place, str):
                boundary, layer = _boundary(place), None
            else:
                boundary, layer = open_image_layer(place, layered, users_limits(settings), opened)
            try:
                self._open(boundary, settings, layered, layer)
            except BaseException:
                boundary.close()
                raise
            self._opened = opened.pop_all()
        self._sessions: set[ClientSession] = set()
        self._closing, self._closed = threading.RLock(), False
        self._default = self.session(approver=approver)

    def _open(
        self, boundary: FsBoundary, given: Mapping[str, Any], layered: bool | str, image: "WorkspaceLayer | None"
    ) -> None:
        layer: WorkspaceLayer | CopiedLayer | None = image
        try:
            asked, self.warnings = settings_for(boundary, given)
            """The warnings for the user about the settings and the state of the workspace."""
            self.settings = with_directories(asked, boundary.root, self.warnings)
            if image is not None:
                refuse_unconfined(self.settings, self.warnings)
            own_files = (config_home(), state_home(), *([self.settings.log] if self.settings.log else []))
            own = () if image is not None else inside(boundary.root, *own_files)
            if layered and image is None:
                layer = open_layer(boundary, layered, asked.limits, self.warnings)
            self._serve(boundary if layer is None else layer.boundary, own, own_files, layer)
        except BaseException:
            if layer is not None:
                layer.close(remove=layer.record.forked)
            raise

    def _serve(
        self,
        boundary: FsBoundary,
        own: tuple[str, ...],
        own_files: Sequence[str],
        layer: "WorkspaceLayer | CopiedLayer | None",
    ) -> None:
        """Open the parts of the workspace over an open root, or over the view of a layer."""
        limits, rules_state = self.settings.limits, State(boundary.root if layer is None else layer.store.root)
        state = rules_state if layer is None else State.within(layer.path, layer.store.sessions)
        if self.settings.protect or own:
            remembered = RememberedFiles(f"{state.path}/protected.json", limits.remembered_files)
            boundary.protected = ProtectedFiles(boundary.fd, protection(self.settings.protect), limits, own, remembered)
        if state.warning:
            self.warnings.append(state.warning)
        durability = self.settings.durability
        journal = journal_of(state, self.settings.journal, sync=durability != "none")
        trees = Trees(boundary, state.path)
        writer = Writer(trees, state, journal, limits, durability)
        parts = {} if layer is None else {"copied" if layer.why else "layer": layer}
        powers, hidden = self.settings.powers, tuple(own_files)
        self._services = Services(trees, state, limits, writer, powers, journal, own=hidden, **parts)  # type: ignore[arg-type]
        self._rules = rules_for(self.settings, rules_state, self.warnings)
        self.recovered = self._recover(writer)
        """The number of commits of killed processes that were rolled back or finished."""
        later = writer.changed_later
        self.warnings += [f"not restored after a loss of power, because it changed later: {path}" for path in later]

    def _recover(self, writer: Writer) -> int:
        try:
            return writer.recover()
        except (OSError, PathFault) as error:
            self.warnings.append(f"cannot clean up after a killed process yet: {error}")
            return 0

    def _internals(self) -> Internals:
        return Internals(self._services, self._rules, self._tell, self.settings, self.warnings)

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<Workspace {self.root}: approve {self.settings.approve}, sandbox {self.settings.sandbox}{state}>"

    @property
    def root(self) -> str:
        """The directory, with links resolved."""
        return self._services.boundary.root

    @property
    def session_id(self) -> str:
        """The name of the caller's own session in logs and in the history."""
        return self._default.id

    def tools(self, dialect: str | Dialect, *, with_undo: bool = False) -> ToolRouter:
        """Return the tools of a dialect, such as `codex`; `with_undo` adds those of the history.

        Raises UnknownDialectError for other names.
        """
        return self._default.tools(dialect, with_undo=with_undo)

    def tools_for(self, model: str) -> ToolRouter:
        """Return the tools that a model was trained on: `tools(dialect_for(model))`, with the setting `models`."""
        from handrail.dialects.by_model import dialect_for  # noqa: PLC0415  most callers name a dialect

        return self.tools(dialect_for(model, self.settings.models))

    def call(self, dialect: str, tool: str, params: Any = None) -> ToolResult:
        """Run one tool of a dialect: `tools(dialect).call(tool, params)`."""
        return self.tools(dialect).call(tool, params)

    async def acall(self, dialect: str, tool: str, params: Any = None) -> ToolResult:
        """Run one tool of a dialect in a worker thread: `tools(dialect).acall(tool, params)`."""
        return await self.tools(dialect).acall(tool, params)

    def session(self, *, approver: "AnyApprover | None" = None) -> "ClientSession":
        """Open a session for one more client, with its own log, terminals, sandbox and approver.

        Raises ClosedError if the workspace is closed.
        """
        with self._closing:
            if self._closed:
                from handrail.tools.fault_errors import closed_error  # noqa: PLC0415  only when something is wrong

                raise closed_error()
            opened = ClientSession(self._internals(), approver, self._sessions.discard)
            self._sessions.add(opened)
            return opened

    def history(self) -> "History":
        """Return the history, which lists, undoes, redoes and restores changes."""
        from handrail.library.history import History  # noqa: PLC0415  most callers do not undo

        return History(default_session(self))

    def mark(self, name: str) -> int:
        """Set a mark in the history, such as the begin of a turn: `history().undo(to=name)` takes back all since."""
        return self.history().mark(name)

    def agent_reads(self, path: str) -> bool:
        """Say whether tools or commands can read a file, so that it cannot keep a secret from the agent."""
        if self._place is not None:
            return False  # they see no file of the host
        own = inside(self.root, config_home(), state_home())
        here = [name for name in inside(self.root, path) if not any(name.startswith(f"{each}/") for each in own)]
        listed = (*self.settings.readable, *self.settings.writable)
        return bool(here) or any(inside(directory, path) for directory in listed)

    def close(self) -> None:
        """Wait for running calls, end all commands and terminals, and refuse later calls."""
        with self._closing:
            if self._closed:
                return
            for session in [*self._sessions]:
                session.close()
            self._services.close()
            self._opened.close()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        import anyio  # noqa: PLC0415  only asynchronous callers need it

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.close)


def internals(workspace: Workspace) -> Internals:
    """Return the parts of a workspace, for surfaces."""
    return workspace._internals()  # noqa: SLF001  this module defines it


def default_session(workspace: Workspace) -> Session:
    """Return the session of the caller who opened the workspace, for surfaces."""
    return workspace._default.inner  # noqa: SLF001  this module defines it


_SETTINGS = tuple(name for name in Settings._fields if name != "rules")


def _text(path: "str | PathLike[str]") -> str:
    return path if isinstance(path, str) else path.__fspath__()


def _place(root: "str | PathLike[str] | None", image: str | None, workdir: str | None) -> str | ImagePlace:
    """Return what a workspace works in. Raises WorkspaceError unless it is either a directory or an image."""
    if image is not None and root is None:
        return ImagePlace(image, workdir)
    if root is None or image is not None or workdir is not None:
        raise WorkspaceError("a workspace needs either a directory, or image=, which may have a workdir=")
    return _text(root)


def _boundary(root: str) -> FsBoundary:
    try:
        return FsBoundary(root)
    except PathFault as fault:
        from handrail.kernel.host.project_root import sibling_directories  # noqa: PLC0415  only when something is wrong
        from handrail.tools.fault_errors import workspace_error  # noqa: PLC0415  only when something is wrong

        raise workspace_error(root, fault, sibling_directories(root)) from fault
