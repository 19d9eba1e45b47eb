"""A workspace: an open directory, its settings, and routers for the dialects that are spoken in it."""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from handrail import __version__
from handrail.dialects import load as load_dialect
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.placeholder import is_empty_directory
from handrail.kernel.fs.protected_files import ProtectedFiles
from handrail.kernel.fs.reader import Reader
from handrail.kernel.fs.trusted_paths import agents_directories, resolved
from handrail.kernel.host.own_places import inside
from handrail.kernel.host.remembered_files import RememberedFiles
from handrail.kernel.host.session_log import SessionLog, warn
from handrail.kernel.host.state_dir import State, config_home, directory_named, environment, read_small_text, state_home
from handrail.kernel.host.use_counts import Tally
from handrail.kernel.journal.journal import journal_of
from handrail.kernel.write.writer import Writer
from handrail.model.faults import Closed, PathFault
from handrail.model.limits import Limits
from handrail.ops.glob.protected_names import protection, read_globs
from handrail.policy.callback import approver_of
from handrail.policy.policy import Policy, Rules
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import from_entry
from handrail.runtime.session import Services, Session
from handrail.settings import IGNORE_FILE, PROJECT_FILE, BadSettings, Settings
from handrail.settings import load as load_settings
from handrail.tools.router import ToolRouter
from handrail.tools.tool import ToolResult

if TYPE_CHECKING:
    from handrail.history import History
    from handrail.kernel.process.runner import Processes


class Workspace:
    """Opened with a root that the agent cannot change. Close it, or use it in a `with` statement.

    `asker` is called with a `Question` when the policy is to ask and no rule decides; it returns a `Verdict` or a bool.
    Whatever else it does is a refusal. `tell` hears, for the user and never for the model, what would allow a call
    that was refused; without it the logger `handrail` warns.
    """

    def __init__(self, root: str, *, asker: Any = None, tell: Any = None, **flags: Any) -> None:
        self.tell: Callable[[str], None] = tell or warn
        boundary = FsBoundary(root)
        try:
            self._open(boundary, flags)
        except BaseException:
            boundary.close()
            raise
        self._sessions: set[ClientSession] = set()
        self._closing, self._closed = threading.RLock(), False
        self._default = self.session(asker=asker)

    def _open(self, boundary: FsBoundary, flags: Mapping[str, Any]) -> None:
        asked, self.notes = settings_for(boundary, flags)
        self.settings = _with_directories(asked, boundary.root, self.notes)
        limits = self.settings.limits
        own = inside(boundary.root, config_home(), state_home())
        state = State(boundary.root)
        if self.settings.protect or own:
            remembered = RememberedFiles(f"{state.path}/protected.json", limits.remembered_files)
            boundary.protected = ProtectedFiles(boundary.fd, protection(self.settings.protect), limits, own, remembered)
        if state.warning:
            self.notes.append(state.warning)
        durability = self.settings.durability
        journal = journal_of(state, self.settings.journal, sync=durability != "none")
        writer = Writer(boundary, state, journal, durability)
        self.services = Services(
            boundary, state, limits, writer, Reader(boundary, limits), self.settings.powers, journal
        )
        self.rules = self._load_rules(state)
        self.recovered = self._recover(writer)

    def _load_rules(self, state: State) -> Rules:
        limits, books = self.settings.limits, (config_home(), state.path)
        user, project = (RuleFile.load(home, limits) for home in books)
        own = tuple(
            from_entry(entry, f"rule {n} in {PROJECT_FILE}", limits) for n, entry in enumerate(self.settings.rules, 1)
        )
        denying = tuple(rule for rule in own if rule.deny)
        if len(denying) < len(own):
            self.notes.append(f"{PROJECT_FILE} cannot approve anything: only its rules with deny = true count")
        return Rules(user, project, limits, denying, Tally(f"{state_home()}/approvals.json"))

    def _recover(self, writer: Writer) -> int:
        try:
            return writer.recover()
        except (OSError, PathFault) as error:
            self.notes.append(f"what a killed process left is not put right yet: {error}")
            return 0

    @property
    def root(self) -> str:
        return self.services.boundary.root

    def agent_reads(self, path: str) -> bool:
        """Says whether tools or commands reach a file, so that it cannot keep a secret from the agent."""
        own = inside(self.root, config_home(), state_home())
        here = [name for name in inside(self.root, path) if not any(name.startswith(f"{each}/") for each in own)]
        listed = (*self.settings.readable, *self.settings.writable)
        return bool(here) or any(inside(directory, path) for directory in listed)

    @property
    def processes(self) -> "Processes":
        """What runs commands, in the sandbox that the settings ask for."""
        return self._default.session.processes

    def session(self, *, asker: Any = None) -> "ClientSession":
        """A client's own session: its log, its terminals, its memory."""
        with self._closing:
            if self._closed:
                raise Closed
            opened = ClientSession(self, asker)
            self._sessions.add(opened)
            return opened

    def tools(self, dialect: str) -> ToolRouter:
        return self._default.tools(dialect)

    def history(self) -> "History":
        """To list, undo, redo and restore what was done here."""
        from handrail.history import History  # noqa: PLC0415  most workspaces are opened to go forward

        return History(self._default.session)

    def call(self, dialect: str, tool: str, params: Any = None) -> ToolResult:
        return self.tools(dialect).call(tool, params)

    def close(self) -> None:
        """Calls that go on come to their end, commands are ended, and later calls are refused."""
        with self._closing:
            if self._closed:
                return
            for session in [*self._sessions]:
                session.close()
            self.services.close()
            self._closed = True

    def forget(self, session: "ClientSession") -> None:
        self._sessions.discard(session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ClientSession:
    def __init__(self, workspace: Workspace, asker: Any) -> None:
        settings, self._workspace = workspace.settings, workspace
        self.rules = workspace.rules.for_session()
        approver = Policy(settings.approve, self.rules, approver_of(asker))
        self.session = Session(workspace.services, approver, self.rules.may_forbid, read_only=settings.read_only)
        self.log = self._open_log(workspace)
        self._routers: dict[str, ToolRouter] = {}

    def _open_log(self, workspace: Workspace) -> SessionLog:
        settings, session = workspace.settings, self.session.id
        path = settings.log or workspace.services.state.session_log(session)
        limits = settings.limits
        chars = limits.log_debug_chars if settings.log_level == "debug" else limits.log_chars
        about = {"root": workspace.root, "version": __version__}
        try:
            return SessionLog(
                path, level=settings.log_level, chars=chars, session=session, about=about, tell=workspace.tell
            )
        except OSError as error:
            if settings.log:
                raise BadSettings(f"log: {path} cannot be written: {error.strerror}") from None
            workspace.notes.append(f"there is no session log: {path} cannot be written: {error.strerror}")
            return SessionLog(None, level="off", chars=0, session=session, tell=workspace.tell)

    def tools(self, dialect: str) -> ToolRouter:
        if dialect not in self._routers:
            self._routers[dialect] = ToolRouter(load_dialect(dialect), self.session, self.log)
        return self._routers[dialect]

    def close(self) -> None:
        self.session.close()
        self.log.close()
        self._workspace.forget(self)


def settings_for(boundary: FsBoundary, flags: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings in force beneath a root, and what its project asked for in vain."""
    user_file = f"{config_home()}/config.toml"
    user = _readable(user_file, lambda: read_small_text(user_file, Limits().config_bytes))
    own = user or flags.get("limits")
    limits = load_settings(user=user, flags=flags, user_file=user_file)[0].limits if own else Limits()
    project = _readable(PROJECT_FILE, lambda: _project_text(boundary, PROJECT_FILE, limits))
    ignored = read_globs(_readable(IGNORE_FILE, lambda: _project_text(boundary, IGNORE_FILE, limits)))
    return load_settings(
        user=user, project=project, ignored=ignored, env=environment(), flags=flags, user_file=user_file
    )


def _with_directories(settings: Settings, root: str, notes: list[str]) -> Settings:
    """The settings with the directories of the sandbox as they are on this machine."""

    def found(key: str, names: tuple[str, ...], agents: tuple[str, ...]) -> tuple[str, ...]:
        named = {name: directory_named(name) for name in names}
        notes.extend(f"{key}: {name} is no absolute path of a directory" for name in names if not named[name])
        led = {path: resolved(path, agents) for path in named.values() if path}
        notes.extend(f"{key}: {p} is ignored: commands can change where it leads" for p, to in led.items() if not to)
        return tuple(to for to in led.values() if to)

    agents = agents_directories(root, filter(None, map(directory_named, settings.writable)))
    return settings._replace(
        readable=found("readable", settings.readable, agents), writable=found("writable", settings.writable, agents)
    )


def _project_text(boundary: FsBoundary, name: str, limits: Limits) -> str:
    if is_empty_directory(boundary.fd, name):  # a sandbox stands on it, or did when it was killed
        return ""
    file = Reader(boundary, Limits(edit_bytes=limits.project_file_bytes)).read_if_there(name)
    return file.data.decode() if file else ""


def _readable(name: str, read: Callable[[], str]) -> str:
    try:
        return read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{name} cannot be read: {error}") from None
    except PathFault as fault:
        from handrail.tools.common_messages import COMMON  # noqa: PLC0415  only where it goes wrong
        from handrail.tools.messages import render  # noqa: PLC0415  the same

        raise BadSettings(f"{name} cannot be read: {render((COMMON,), '', fault, {}).message}") from None
