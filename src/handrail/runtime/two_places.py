"""Asks a question on the page and in its ordinary place at the same time; the first answer wins.

The ordinary place is the approver of the session: a terminal, an MCP client, a function. If it says that no user was
asked, that is no answer while a user can answer on the page. If the page's server dies, the ordinary place decides.
"""

import time
from contextvars import copy_context
from inspect import iscoroutine
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from handrail.errors import RuleError
from handrail.kernel.page.page_messages import Message
from handrail.model.approval import Keep, Question, Verdict
from handrail.model.faults import Cancelled
from handrail.model.withdrawal import Withdrawn, withdrawn
from handrail.policy.callback import AnyApprover, asked, finished, verdict_of
from handrail.policy.policy import no_approver
from handrail.policy.question_facts import why_not_kept
from handrail.policy.suggest import keeps
from handrail.runtime.page_session import PageQuestion, PageSession, asking_call

_LOOK_SECONDS = 0.05
"""How often a question looks whether its call was cancelled."""
_TOLD_SECONDS = 2.0
"""The time in which a server says, after a new connection, whether a user can answer."""
_JOIN_SECONDS = 0.3
_NO_USER = ("no approver", "server")
"""Who decides where no user was asked."""


def ask_in_two_places(page: PageSession, question: Question, ordinary: AnyApprover | None) -> Verdict:
    """Return the first answer. Raises what the ordinary place raises, and Cancelled."""
    return _Asking(page, question, ordinary).decided()


class _Asking:
    """Asks one question in two places."""

    def __init__(self, page: PageSession, question: Question, ordinary: AnyApprover | None) -> None:
        self._page, self._question, self._ordinary = page, question, ordinary
        self._said = SimpleQueue[Any]()
        self._over, self._answered = Event(), False
        self._call = asking_call.get()
        self._on_page = PageQuestion(page, question, self._call, self._answered_on_page)
        self._began = time.monotonic()
        self._no_user: Verdict | None = None
        """The verdict of the ordinary place, if no user was asked there."""

    def decided(self) -> Verdict:
        """Return the first answer. Raises what the ordinary place raises, and Cancelled."""
        verdict, place, thread = None, "", self._ask_ordinary()
        try:
            verdict, place = self._first_answer()
            return verdict
        finally:
            self._on_page.settle(verdict, place)
            self._over.set()
            self._drop_rest()
            if thread is not None and place == "page":
                thread.join(_JOIN_SECONDS)  # a terminal gets its settings back

    def _drop_rest(self) -> None:
        """Close what an asynchronous approver has begun, if the page was faster."""
        while not self._said.empty():
            _place, said = self._said.get()
            if iscoroutine(said):
                said.close()

    def _ask_ordinary(self) -> Thread | None:
        if self._ordinary is None:
            self._no_user = no_approver(self._question)
            return None
        context = copy_context()
        context.run(withdrawn.set, self._over)
        thread = Thread(target=context.run, args=(self._ask_here, self._ordinary), name="handrail-ask", daemon=True)
        thread.start()
        return thread

    def _ask_here(self, ordinary: AnyApprover) -> None:
        """Ask in the ordinary place, in a thread of its own: no answer on the page has to wait for it."""
        try:
            self._said.put(("here", ordinary(self._question)))
        except Withdrawn:
            return
        except BaseException as error:  # noqa: BLE001  the asking thread raises it
            self._said.put(("here", error))

    def _first_answer(self) -> tuple[Verdict, str]:
        while True:
            if self._no_user is not None and not self._can_answer_on_page():
                return self._no_user, "here"
            if self._call is not None and self._call.cancel.is_set():
                raise Cancelled
            try:
                place, said = self._said.get(timeout=_LOOK_SECONDS)
            except Empty:
                self._page.there()  # a server that was started again gets the question, too
                continue
            verdict = said if place == "page" else self._from_here(said)
            if verdict is not None:
                return verdict, place

    def _can_answer_on_page(self) -> bool:
        link = self._page.link
        seconds = _TOLD_SECONDS if link.watched is None else self._page.limits.question_seconds
        return link.open and link.watched is not False and time.monotonic() < self._began + seconds

    def _from_here(self, said: Any) -> Verdict | None:
        """Return the answer of the ordinary place; None if no user was asked there, or the page was faster."""
        try:
            verdict = asked(self._question, lambda: self._settled(said))
        except Withdrawn:
            return None
        if verdict.decided_by not in _NO_USER:
            return verdict
        self._no_user = verdict
        return None

    def _settled(self, said: Any) -> Any:
        if isinstance(said, BaseException):
            raise said
        return finished(said, lambda: self._answered)

    def _answered_on_page(self, message: Message) -> None:
        """Take an answer that was given on the page; say there why one cannot be taken."""
        try:
            verdict = answer_of(self._question, message, self._page)
        except (RuleError, ValueError, TypeError) as error:
            self._on_page.refuse(str(error))
            return
        self._answered = True
        self._said.put(("page", verdict))


def answer_of(question: Question, said: Message, page: PageSession) -> Verdict:
    """Return the verdict that an answer on the page means. Raises RuleError for a rule that does not cover the call."""
    answer, reason = str(said.get("answer")), str(said.get("reason") or "").strip()
    if answer == "no":
        why = f"the user said no: {reason}" if reason else "the user said no"
        return Verdict(False, "user", reason=why, remedy="Ask what to do instead")
    if answer == "once":
        return Verdict(True, "user")
    keep = keeps(question, page.limits).get(answer)
    if keep is None:
        raise RuleError(f"the answer {answer} cannot be given to this question")
    rule, scope = str(said.get("rule") or "").strip() or keep.rule, said.get("scope") or keep.scope
    hours = said.get("hours")
    keep = Keep(scope, rule, None if hours is None else float(hours))
    if why := why_not_kept(question, keep, page.limits):
        raise RuleError(f"the rule does not cover this call: {why}")
    return verdict_of(Verdict(True, "user", always=True, keep=keep))
