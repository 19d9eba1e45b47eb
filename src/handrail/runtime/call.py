"""The capability that a tool is handed for one call: what it may touch, and what it has to say beside its output."""

import threading
import time
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.journal.journal import Origin
from handrail.model.approval import Question, Verdict
from handrail.model.effects import Effect
from handrail.model.faults import Cancelled, Conflict, Denied, Fault, PathFault, ReadOnlyWorkspace
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.model.record import record
from handrail.model.warnings import RuleNotStored
from handrail.runtime.files import Files
from handrail.runtime.session import Session

if TYPE_CHECKING:
    from handrail.kernel.web.fetcher import Fetched, Target
    from handrail.runtime.commands import Commands
    from handrail.runtime.search import Finder


class Asked(NamedTuple):
    """Which call of its session it is, what its caller names it, and how the caller stops it."""

    number: int = 0
    call_id: str | None = None
    cancel: threading.Event | None = None


_ASKED_BY_NOBODY = Asked()


@record
class Call:
    """One call: what it may touch, and what it has to say beside its output."""

    session: Session
    dialect: str
    tool: str
    params: dict[str, Any]
    effects: Effect
    bodies: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    """The parameters that are paths."""
    asked: Asked = _ASKED_BY_NOBODY
    files_affected: list[str] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    """Facts to be said beside the answer, worded like faults."""
    metadata: dict[str, Any] = field(default_factory=dict)
    waited: float = 0.0
    """Seconds at the gate, which are not the tool's own."""

    @property
    def cancel(self) -> threading.Event | None:
        return self.asked.cancel

    @property
    def limits(self) -> Limits:
        return self.session.services.limits

    @property
    def root(self) -> str:
        return self.session.services.boundary.root

    @property
    def files(self) -> Files:
        return Files(self)

    @property
    def finder(self) -> "Finder":
        from handrail.runtime.search import Finder  # noqa: PLC0415  only where something is searched

        return Finder(self)

    @property
    def commands(self) -> "Commands":
        from handrail.runtime.commands import Commands  # noqa: PLC0415  only where something is run

        return Commands(self)

    def fetch(self, url: str, seconds: float) -> "Fetched":
        fetcher = self.session.services.fetcher
        given = [name for name, value in self.params.items() if value == url]

        def ask(target: "Target", unasked: str = "redirect") -> None:
            meant = dict.fromkeys(given, target.normal)
            self.ask(Effect.FETCH, meant, host=target.host, unasked=unasked)

        ask(fetcher.target(url), unasked="")
        return fetcher.fetch(url, seconds, self.cancel, ask)

    def check_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled

    def origin(self, verdict: Verdict, kind: str, undoes: tuple[int, ...] = (), about: str = "") -> Origin:
        """Who asks, for the journal."""
        who = (self.session.id, self.asked.number, self.asked.call_id, self.dialect, self.tool)
        return Origin(kind, *who, verdict.by, undoes, about)

    def begin(self) -> None:
        """Refuse what a rule forbids before the tool looks at anything: reading and previews are never asked about."""
        if not self.session.may_forbid(self.tool):
            return
        try:
            resolved = self._resolved(None, follow=Effect.DELETE not in self.effects)
        except Conflict:  # it leads nowhere: the tool will say so
            resolved = None
        self._decide(self._question(self.effects, resolved=resolved, unasked="beginning"))

    def begin_again(self) -> None:
        """The file changed before the edit could land: forget what was said and work it out anew."""
        self.files_affected.clear()
        self.warnings.clear()
        self.metadata.clear()

    def ask(
        self, effects: Effect, meant: dict[str, Any] | None = None, known: tuple[str, str] | None = None, **shown: Any
    ) -> Verdict:
        """Pass the gate, or raise Denied. `shown` are the fields of the question that say what would happen, `meant`
        parameters as rules see them, `known` a path whose place was just looked up, and that place.
        """
        if self.session.read_only:
            raise ReadOnlyWorkspace(self.tool)
        self.check_cancelled()
        resolved, targets = self._resolved(known, follow=Effect.DELETE not in effects), shown.get("targets", ())
        named = [place for name in self.paths if isinstance(place := resolved.get(name), str)]
        guarded = self.session.services.guarded(dict.fromkeys([*targets, *named]))
        unnamed = [place for place in targets if place not in named]
        resolved |= (meant or {}) | ({"targets": unnamed} if unnamed else {})
        question = self._question(effects, resolved=resolved, guarded=guarded, **shown)
        began = time.perf_counter()
        try:
            with self.session.open_calls.away():
                verdict = self._decide(question)
        finally:
            self.waited += time.perf_counter() - began
        if verdict.warning:
            self.warnings.append(RuleNotStored(verdict.warning))
        self.check_cancelled()
        return verdict

    def _decide(self, question: Question) -> Verdict:
        verdict = self.session.approver(question)
        if not verdict.allowed:
            raise Denied(question.tool, verdict.reason, verdict.remedy, verdict.allow)
        return verdict

    def _question(self, effects: Effect, **shown: Any) -> Question:
        return Question(self.dialect, self.tool, self.params, effects, self.bodies, self.paths, root=self.root, **shown)

    def _resolved(self, known: tuple[str, str] | None, *, follow: bool) -> dict[str, Any]:
        """The parameters with every path as the place that it means. They were looked at before: one that leads nowhere
        now has been exchanged since.
        """
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
