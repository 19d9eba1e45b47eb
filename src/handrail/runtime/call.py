"""Gives a tool what it may use during one call, and collects its warnings, metadata and changed files."""

import threading
import time
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.journal.journal import Origin
from handrail.model.approval import Question, Verdict
from handrail.model.effects import Effect
from handrail.model.faults import Cancelled, Conflict, Denied, PathFault, ReadOnlyWorkspace
from handrail.model.hooks import Judgement
from handrail.model.limits import Limits
from handrail.model.paths import quote, stem_of
from handrail.model.record import record
from handrail.model.warnings import HookSaid, RootReplaced, RuleNotStored, ToolWarning
from handrail.runtime.file_access import Files
from handrail.runtime.session import Session

if TYPE_CHECKING:
    from handrail.kernel.web.fetcher import Fetched, Target
    from handrail.runtime.commands import Commands
    from handrail.runtime.hook_changes import Written
    from handrail.runtime.job_commands import JobCommands
    from handrail.runtime.page_session import LiveCall
    from handrail.runtime.search import Finder


class Asked(NamedTuple):
    """Identifies a call: its number in the session, the caller's name for it, and how the caller cancels it."""

    number: int = 0
    call_id: str | None = None
    cancel: threading.Event | None = None
    changed: bool = False
    """True if a hook that was asked for approval has changed the input."""
    live: "LiveCall | None" = None
    """Reports the call to the page; None if no page's server runs."""


_UNNUMBERED = Asked()
_UNJUDGED = Judgement()
_CALL_ID_CHARS = 200
"""The most characters of the caller's name for a call that the journal keeps."""


class TrialOver(Exception):  # noqa: N818  not an error: everything that can be checked was checked
    """Ends a trial where its tool would change, run, fetch or take something."""


@record
class Call:
    """One call of a tool. Asks the approver, and gives access to files, searches, commands and pages."""

    session: Session
    dialect: str
    tool: str
    params: dict[str, Any]
    effects: Effect
    bodies: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    """The parameters that are paths."""
    mount: str = ""
    """The tree of these paths: empty for the workspace, `/memories` for the memory directory."""
    asked: Asked = _UNNUMBERED
    files_affected: list[str] = field(default_factory=list)
    warnings: list[ToolWarning] = field(default_factory=list)
    """Facts that the result reports as warnings; the dialect words them."""
    known_warnings: tuple[ToolWarning, ...] = ()
    """The warnings that were known before the call began."""
    metadata: dict[str, Any] = field(default_factory=dict)
    waited: float = 0.0
    """Seconds spent waiting for the approver or for hooks, which do not count as execution time."""
    trial: bool = False
    """True if the tool only checks what is wrong with the call: it asks nothing, changes nothing and notes nothing."""
    judged: Judgement = _UNJUDGED
    """What the hooks said before the call."""
    written: dict[str, "Written"] = field(default_factory=dict)
    """What the call wrote, by resolved path, if hooks may change it."""

    @property
    def cancel(self) -> threading.Event | None:
        return self.asked.cancel

    @property
    def tap(self) -> Callable[[bytes], None] | None:
        """What shows the output of a command while it runs; None if no page's server runs."""
        return self.asked.live.print if self.asked.live else None

    @property
    def limits(self) -> Limits:
        return self.session.services.limits

    @property
    def root(self) -> str:
        return self.session.services.boundary.root

    @property
    def stem(self) -> str:
        """How the absolute paths inside the root begin."""
        return stem_of(self.root)

    @property
    def files(self) -> Files:
        return Files(self)

    @property
    def finder(self) -> "Finder":
        from handrail.runtime.search import Finder  # noqa: PLC0415  only searches need it

        return Finder(self)

    @property
    def commands(self) -> "Commands":
        from handrail.runtime.commands import Commands  # noqa: PLC0415  only commands need it

        return Commands(self)

    @property
    def jobs(self) -> "JobCommands":
        from handrail.runtime.job_commands import JobCommands  # noqa: PLC0415  only jobs need it

        return JobCommands(self)

    def fetch(self, url: str, seconds: float) -> "Fetched":
        """Ask for and fetch a page. Rules are asked about every redirect, too."""
        fetcher = self.session.services.fetcher
        given = [name for name, value in self.params.items() if value == url]

        def ask(target: "Target", unasked: str = "redirect") -> None:
            meant = dict.fromkeys(given, target.normal)
            self.ask(Effect.FETCH, meant, host=target.shown_host, address=target.normal, unasked=unasked)

        ask(fetcher.target(url), unasked="")
        return fetcher.fetch(url, seconds, self.cancel, ask)

    def end_trial(self) -> None:
        """Raise TrialOver if the call is a trial. Stands before every step that has an effect."""
        if self.trial:
            raise TrialOver

    def check_cancelled(self) -> None:
        """Raise Cancelled if the caller has cancelled the call."""
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled

    def origin(self, verdict: Verdict, kind: str, undoes: tuple[int, ...] = (), about: str = "") -> Origin:
        """Return who makes a change, for the journal."""
        call_id = self.asked.call_id and self.asked.call_id[:_CALL_ID_CHARS]
        who = (self.session.id, self.asked.number, call_id, self.dialect, self.tool)
        return Origin(kind, *who, verdict.decided_by, undoes, about)

    def note_beginning(self) -> None:
        """Add the warnings that are known before the tool runs."""
        if self.session.services.copied is not None:
            self.metadata["layer"] = f"a copy: {self.session.services.copied.why}"
        if self.session.services.boundary.was_replaced():
            self.warnings.append(RootReplaced())
        self.warnings += self.known_warnings
        self.warnings += [HookSaid(text) for text in self.judged.contexts]

    def begin(self) -> None:
        """Raise Denied if a rule forbids the call, before the tool reads anything. Reading is never asked about."""
        if not self.session.may_forbid(self.tool):
            return
        try:
            resolved = self._resolved(None, follow=Effect.DELETE not in self.effects)
        except Conflict:  # the path leads nowhere: the tool reports it
            resolved = None
        self._decide(self._question(self.effects, resolved=resolved, unasked="beginning"))

    def begin_again(self) -> None:
        """Forget the results so far: a file changed before the edit was written, and the tool runs again."""
        self.files_affected.clear()
        self.warnings.clear()
        self.note_beginning()
        self.metadata.clear()

    def ask(
        self, effects: Effect, meant: dict[str, Any] | None = None, known: tuple[str, str] | None = None, **shown: Any
    ) -> Verdict:
        """Ask whether the call may go on; raise Denied if not.

        `shown` are fields of the question that say what would happen, `meant` are parameters as rules see them, and
        `known` is a path that was just resolved, with its target.
        """
        if self.session.read_only:
            raise ReadOnlyWorkspace(self.tool)
        self.end_trial()
        self.check_cancelled()
        resolved, targets = self._resolved(known, follow=Effect.DELETE not in effects), shown.get("targets", ())
        named = [place for name in self.paths if isinstance(place := resolved.get(name), str)]
        guarded = self.session.services.guarded(dict.fromkeys([*targets, *named]))
        unnamed = [place for place in targets if place not in named]
        resolved |= (meant or {}) | ({"targets": unnamed} if unnamed else {})
        question = self._question(effects, resolved=resolved, guarded=guarded, **shown)
        began = time.perf_counter()
        try:
            with self.session.open_calls.paused(), self.session.part("approval") as span:
                verdict = self._decide(question)
                if span:
                    span.set_attribute("handrail.approval.by", verdict.decided_by)
                    span.set_attribute("handrail.approval.waited_ms", round((time.perf_counter() - began) * 1000))
        finally:
            self.waited += time.perf_counter() - began
        if verdict.warning:
            self.warnings.append(RuleNotStored(verdict.warning))
        self.check_cancelled()
        return verdict

    def _decide(self, question: Question) -> Verdict:
        live = self.asked.live
        if live is None:
            verdict = self.session.approver(question)
        else:
            with live.asking():
                verdict = self.session.approver(question)
            live.decided_by = live.decided_by if question.unasked else verdict.decided_by
        if not verdict.allowed:
            raise Denied(question.tool, verdict.reason, verdict.remedy, verdict.how_to_allow)
        return verdict

    def _question(self, effects: Effect, **shown: Any) -> Question:
        shown |= {"root": self.root, "hook": self.judged.decision, "hook_reason": self.judged.reason}
        return Question(self.dialect, self.tool, self.params, effects, self.bodies, self.paths, **shown)

    def _resolved(self, known: tuple[str, str] | None, *, follow: bool) -> dict[str, Any]:
        """Return the parameters with every path resolved. Raises Conflict if one no longer resolves."""
        resolved = dict(self.params)
        for name in self.paths & resolved.keys():
            if resolved[name] is not None:
                try:
                    given = resolved[name]
                    place = known[1] if known and given == known[0] else self.files.target(given, follow=follow)
                    resolved[name] = quote(place) or "."
                except PathFault:
                    raise Conflict(resolved[name]) from None
        return resolved
