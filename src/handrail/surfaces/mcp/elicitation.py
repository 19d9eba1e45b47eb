"""Asks for approval over MCP: the client asks the user, as its protocol revision defines.

Until 2025-11-25 the server sends an elicitation request and the call waits. From 2026-07-28 on the call returns the
question and a sealed state; the client asks the user, then calls again with the answer and the state, and the tool runs
again from the start. The answer is valid only for exactly the change that was shown.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from handrail.model.approval import Question, Verdict
from handrail.model.files import Change, Put, Remove, Restore
from handrail.model.limits import Limits
from handrail.policy.policy import no_approver, refused
from handrail.policy.suggest import keeps
from handrail.surfaces.mcp.mcp_requests import ClientError, ClientRequest
from handrail.surfaces.mcp.question_outline import outlined
from handrail.surfaces.mcp.sealed_state import Sealer, digest

KEY = "approval"
SHOW_ALL = "show all"
_ROWS = 200
"""The most rows of a change that a question shows in full."""
_ONCE, _NO = {"once": "allow this call"}, {"no": "refuse this call"}
_MORE = {SHOW_ALL: "show the question again in full"}

_POLICY = "start the server with --approve host or --approve auto"
_NO_QUESTIONS = "Use a client that supports elicitation"
_CLOSED = "Answer the question in the client; a client without a terminal closes every question, so start it in one"
_TOO_LATE = "Answer the question in the client in time, or raise limits.question_seconds"
_WITH_TOKEN = ("Start the server without --no-token, so that it can ask", "with --approve auto")

Ask = Callable[[Question], Verdict]

asking: ContextVar[Ask] = ContextVar("asking")
"""The function that asks the client of the call that runs in this context."""


def ask_the_client(question: Question) -> Verdict:
    """Ask the client of the running call; sessions of MCP clients use this approver."""
    return asking.get()(question)


def refuse_without_elicitation(question: Question) -> Verdict:
    """Refuse, because the client cannot ask the user."""
    return _no_answer(question, "this client cannot ask the user", _NO_QUESTIONS)


def refuse_without_token(question: Question) -> Verdict:
    """Refuse: over HTTP without a token a command of the agent could act as the client and answer."""
    return refused(question, "server", "this server has no token and therefore cannot ask for approval", *_WITH_TOKEN)


class Dialogue:
    """Asks the client during the call, for protocol revisions in which a server may send requests."""

    def __init__(self, request: ClientRequest, limits: Limits) -> None:
        self._request, self._limits = request, limits

    def __call__(self, question: Question) -> Verdict:
        seconds = self._limits.question_seconds
        asked_at = time.monotonic()
        try:
            answer = self._request.ask(form(question, self._limits, everything=False), seconds)
            if wants_all(answer):
                asked_at = time.monotonic()
                answer = self._request.ask(form(question, self._limits, everything=True), seconds)
        except TimeoutError:
            return _no_answer(question, f"the question was open for {seconds:g} seconds", _TOO_LATE)
        except ClientError as error:
            return _no_answer(question, f"the client answered with an error: {error}", _NO_QUESTIONS)
        return verdict(question, answer, self._limits, time.monotonic() - asked_at)


class Rounds:
    """Asks the client over several calls, for the stateless protocol revision."""

    def __init__(self, sealer: Sealer, limits: Limits, call: str, state: str | None, responses: dict[str, Any]) -> None:
        """Read the answers of earlier calls; `call` is a digest of the client, the tool and its arguments."""
        self._sealer, self._limits, self._call = sealer, limits, call
        self._open: Question | None = None
        facts: dict[str, Any] = {"asked": "", "allowed": [], "at": 0} if state is None else sealer.open(call, state)
        self._waited = time.monotonic() - facts["at"]
        self._asked: str = facts["asked"]
        """The fingerprint of the question that the answer belongs to; empty if there is no answer yet."""
        self._allowed = set[str](facts["allowed"])
        self._answer = responses.get(KEY)

    def __call__(self, question: Question) -> Verdict:
        name = fingerprint(question)
        if name in self._allowed:
            return Verdict(True, "user")
        if name != self._asked or wants_all(self._answer):
            self._open = question
            return Verdict(False, "client", reason="the client is asking the user", remedy="Wait for the answer")
        decided = verdict(question, self._answer, self._limits, self._waited)
        if decided.allowed:
            self._allowed.add(name)
        return decided

    def unanswered(self) -> dict[str, Any] | None:
        """Return the result that passes the open question to the client, or None."""
        if self._open is None:
            return None
        name = fingerprint(self._open)
        facts = {"asked": name, "allowed": sorted(self._allowed), "at": time.monotonic()}
        state = self._sealer.seal(self._call, facts)
        shown = form(self._open, self._limits, everything=name == self._asked)
        asked = {"method": "elicitation/create", "params": {"mode": "form", **shown}}
        return {"resultType": "input_required", "inputRequests": {KEY: asked}, "requestState": state}


def verdict(question: Question, answer: Any, limits: Limits, waited: float) -> Verdict:
    """Return the verdict of the client's answer; only `once`, `session` and `always` allow the call.

    Only `no` and `decline` say that the user refused. In all other cases no user has answered; so too if the client
    declined sooner than a user can, as clients without a terminal do.
    """
    action, decision = _said(answer)
    if decision == "once":
        return Verdict(True, "user")
    if keep := keeps(question, limits).get(decision):
        return Verdict(True, "user", always=True, keep=keep)
    if action == "decline" and waited < limits.quickest_answer_seconds:
        return _no_answer(question, "the client declined at once and asked no user", _CLOSED)
    if decision == "no" or action == "decline":
        return Verdict(False, "user", reason="the user said no", remedy="Ask what to do instead")
    if action == "cancel":
        return _no_answer(question, "the client closed the question without an answer", _CLOSED)
    return _no_answer(question, "the client sent no valid answer", _NO_QUESTIONS)


def _no_answer(question: Question, why: str, user: str) -> Verdict:
    """Refuse, because no user has answered; `why` is for the model, `user` tells the user what to do."""
    return no_approver(question, user, _POLICY, reason=f"no user answered: {why}")


def wants_all(answer: Any) -> bool:
    """Return True if the user wants to see the question in full before deciding."""
    return _said(answer)[1] == SHOW_ALL


def _said(answer: Any) -> tuple[str, str]:
    """Return the action and the decision in an answer; empty texts for what it does not have."""
    action = answer.get("action") if isinstance(answer, dict) else ""
    content = answer.get("content") if action == "accept" else None
    return str(action), str(content.get("decision")) if isinstance(content, dict) else ""


def form(question: Question, limits: Limits, *, everything: bool) -> dict[str, Any]:
    """Return the text of the question, which says what each answer does, and the schema of its answers."""
    from handrail.surfaces.approval_text import QuestionView, display, happening, keep_lines, keep_names, whole  # noqa: PLC0415  needed for questions only

    view = whole() if everything else QuestionView(_ROWS)
    effects = outlined(happening(question, view), question.targets)
    shown = [*effects, "", display(question, view), ""]
    kept = keeps(question, limits)
    answers = {**_ONCE, **keep_lines(question, kept, view), **_NO} | (_MORE if view.cut else {})
    lines = [f"{answer}: {means}" for answer, means in answers.items()]
    schema = _schema({**answers, **keep_names(question, kept, whole())})
    return {"message": "\n".join([*shown, *lines]).strip(), "requestedSchema": schema}


def _schema(answers: dict[str, str]) -> dict[str, Any]:
    """Return a form with one field. Clients show the default as chosen, so Enter answers `once`.

    Some clients show only the first lines of the question, but all names: there the user reads what an answer keeps.
    """
    names = [f"{answer}: {means}" for answer, means in answers.items()]
    decision = {"type": "string", "title": "Allow this?", "enum": [*answers], "enumNames": names, "default": "once"}
    return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}


def fingerprint(question: Question) -> str:
    """Return a digest of the question and its changes; a different change gives a different digest."""
    facts = {name: value for name, value in question._asdict().items() if name != "changes"}
    shown = {**facts, "effects": question.effects.value}
    return digest(shown, [_facts(change) for change in question.changes])


def _facts(change: Change) -> list[Any]:
    """Return the contents before and after a change."""
    base = change.base if isinstance(change, Put | Remove | Restore) else None
    after = change.data if isinstance(change, Put) else None
    if isinstance(change, Restore) and change.to is not None:
        after = change.to.data
    return [type(change).__name__, change.path, base and base.data, after]
