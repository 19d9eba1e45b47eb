"""Gives one client of a workspace its approver, its log and its routers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Self

from handrail import __version__
from handrail.dialects import load as load_dialect
from handrail.errors import SettingsError
from handrail.kernel.host.session_log import SessionLog
from handrail.library.raw_access import RawAccess
from handrail.model.approval import Approver, Question, Verdict
from handrail.policy.callback import approver_of
from handrail.policy.policy import Policy, Rules, no_approver
from handrail.runtime.session import Services, Session
from handrail.settings import Settings
from handrail.tools.router import ToolRouter
from handrail.tools.tool import Dialect

if TYPE_CHECKING:
    from handrail.kernel.process.job_records import RecordedJob
    from handrail.library.history import History
    from handrail.policy.callback import AnyApprover


class Internals(NamedTuple):
    """Holds the parts of an open workspace that its sessions and surfaces need and callers do not."""

    services: Services
    rules: Rules
    tell: Callable[[str], None]
    settings: Settings
    warnings: list[str]


class ClientSession(RawAccess):
    """Holds one client of a workspace: approver, log and routers. Close it, or use it in a `with` statement."""

    def __init__(
        self, inner: Internals, approver: "AnyApprover | None", closed: "Callable[[ClientSession], None]"
    ) -> None:
        """Open a session; `closed` is called when it has ended."""
        settings, self._closed = inner.settings, closed
        self._rules = inner.rules.for_session()
        asked, hooks = self._asking(approver), None
        if settings.hooks:
            from handrail.runtime.call_hooks import CallHooks  # noqa: PLC0415  most users have no hooks

            hooks = CallHooks(settings.hooks, inner.services, settings.approve, read_only=settings.read_only)
            asked = hooks.asking(asked)
        policy = Policy(settings.approve, self._rules, asked)
        self._session = Session(inner.services, policy, self._rules.may_forbid, read_only=settings.read_only)
        self.log = self._open_log(inner)
        if hooks is not None:
            hooks.attach(self._session.id, self.log)
            self._session.hooks = hooks
        if settings.telemetry == "otel":
            from handrail.runtime.spans import Spans  # noqa: PLC0415  slow to import, and off by default

            self._session.spans = Spans(self._session.id, contents=settings.telemetry_contents)
        self._session.note = self.log.note
        self._routers: dict[tuple[str, bool], ToolRouter] = {}

    def _asking(self, approver: "AnyApprover | None") -> Approver:
        """Return an approver that asks the caller's one, and the page too if it runs."""
        alone = approver_of(approver)

        def ask(question: Question) -> Verdict:
            page = self._session.page
            if page is not None:
                from handrail.runtime.two_places import ask_in_two_places  # noqa: PLC0415  only if the page runs

                return ask_in_two_places(page, question, approver)
            return alone(question) if alone else no_approver(question)

        return ask

    @property
    def inner(self) -> Session:
        """The session behind the routers, for surfaces."""
        return self._session

    @property
    def id(self) -> str:
        """The name of the session in logs and in the history."""
        return self._session.id

    def _open_log(self, inner: Internals) -> SessionLog:
        settings, session = inner.settings, self._session.id
        path = settings.log or inner.services.state.session_log(session)
        limits = settings.limits
        chars = limits.log_debug_chars if settings.log_level == "debug" else limits.log_chars
        about = {"root": inner.services.boundary.root, "version": __version__}
        try:
            return SessionLog(
                path, level=settings.log_level, chars=chars, session=session, about=about, tell=inner.tell
            )
        except OSError as error:
            if settings.log:
                raise SettingsError(f"log: {path} cannot be written: {error.strerror}") from None
            inner.warnings.append(f"there is no session log: {path} cannot be written: {error.strerror}")
            return SessionLog(None, level="off", chars=0, session=session, tell=inner.tell)

    def tools(self, dialect: str | Dialect, *, with_undo: bool = False) -> ToolRouter:
        """Return the tools of a dialect, by name or as an object. Raises UnknownDialectError for other names.

        `with_undo` adds the tools `history`, `undo`, `restore` and `mark`.
        """
        name = dialect if isinstance(dialect, str) else dialect.name
        if (name, with_undo) not in self._routers:
            found = load_dialect(dialect) if isinstance(dialect, str) else dialect
            if with_undo:
                from handrail.library.undo_tools import with_undo_tools  # noqa: PLC0415  most callers do not undo

                found = with_undo_tools(found)
            self._routers[name, with_undo] = ToolRouter(found, self._session, self.log)
        return self._routers[name, with_undo]

    def history(self) -> "History":
        """Return the history, in the name of this session."""
        from handrail.library.history import History  # noqa: PLC0415  most callers do not undo

        return History(self._session)

    def mark(self, name: str) -> int:
        """Set a mark in the history in the name of this session."""
        return self.history().mark(name)

    def jobs(self) -> "list[RecordedJob]":
        """Return the jobs of this session: all that run, and the last ones that ended, the oldest first."""
        from handrail.kernel.process.job_records import recorded  # noqa: PLC0415  most sessions have no jobs

        known = self._session.known_jobs
        return [recorded(self.id, job) for job in known.list()] if known else []

    def close(self) -> None:
        """Wait for running calls, and end all commands and terminals of this client."""
        self._session.close()
        self.log.close()
        self._closed(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
