"""Asks for approval over MCP: the client asks the user, as its protocol revision defines.

Until 2025-11-25 the server sends an elicitation request and the call waits. From 2026-07-28 on the call returns the
question and a sealed state; the client asks the user, then calls again with the answer and the state, and the tool runs
again from the start. The answer is valid only for exactly the change that was shown.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from typing import Any

from handrail.model.approval import Question, Verdict
from handrail.model.faults import Cancelled
from handrail.model.files import Change, Put, Remove, Restore
from handrail.policy.policy import no_approver, refused
from handrail.surfaces.mcp.sealed_state import Sealer, digest

KEY = "approval"
SHOW_ALL = "show all"
_ROWS = 200
"""The most rows of a change that a question shows in full."""
_ANSWERS = {"once": "allow this call", "always": "allow exactly this call from now on", "no": "refuse this call"}
_MORE = {SHOW_ALL: "show the question again in full"}

_WAYS = ("Use a client that supports elicitation", "start the server with --approve host or --approve auto")
_WITH_TOKEN = ("Start the server without --no-token, so that it can ask", "with --approve auto")

Ask = Callable[[Question], Verdict]

asking: ContextVar[Ask] = ContextVar("asking")
"""The function that asks the client of the call that runs in this context."""


def ask_the_client(question: Question) -> Verdict:
    """Ask the client of the running call; sessions of MCP clients use this approver."""
    return asking.get()(question)


def refuse_without_elicitation(question: Question) -> Verdict:
    """Refuse, because the client cannot ask the user."""
    return no_approver(question, *_WAYS)


def refuse_without_token(question: Question) -> Verdict:
    """Refuse: over HTTP without a token a command of the agent could act as the client and answer."""
    return refused(question, "server", "this server has no token and therefore cannot ask for approval", *_WITH_TOKEN)


class Dialogue:
    """Asks the client during the call, for protocol revisions in which a server may send requests."""

    def __init__(self, context: Any) -> None:
        self._context, self._loop = context, asyncio.get_running_loop()
        self._answer: Future[Any] | None = None
        self._stopped = False

    def __call__(self, question: Question) -> Verdict:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  a running server has loaded it already

        try:
            answer = self._elicit(question)
            if wants_all(answer):
                answer = self._elicit(question, everything=True)
        except CancelledError:
            raise Cancelled from None
        except MCPError as error:
            return refused(question, "client", f"the client returned an error instead of an answer: {error}", *_WAYS)
        return verdict(answer.action, answer.content)

    def _elicit(self, question: Question, *, everything: bool = False) -> Any:
        asked = form(question, everything=everything)
        sent = self._context.session.elicit_form(asked["message"], asked["requestedSchema"], self._context.request_id)
        self._answer = asyncio.run_coroutine_threadsafe(sent, self._loop)
        if self._stopped:
            self._answer.cancel()
        return self._answer.result()

    def stop(self) -> None:
        """Cancel the question, because the call was cancelled."""
        self._stopped = True
        if self._answer is not None:
            self._answer.cancel()


class Rounds:
    """Asks the client over several calls, for the stateless protocol revision."""

    def __init__(self, sealer: Sealer, call: str, state: str | None, responses: dict[str, Any]) -> None:
        """Read the answers of earlier calls; `call` is a digest of the client, the tool and its arguments."""
        self._sealer, self._call = sealer, call
        self._verdicts: dict[str, Verdict] = {}
        self._open: Question | None = None
        self._whole = ""
        """The fingerprint of the question to show in full."""
        if state is not None:
            facts = sealer.open(call, state)
            self._verdicts = {each: Verdict(True, "user") for each in facts["allowed"]}
            answer = responses.get(KEY)
            if wants_all(answer):
                self._whole = facts["asked"]
            else:
                self._verdicts[facts["asked"]] = _answered(answer)

    def __call__(self, question: Question) -> Verdict:
        decided = self._verdicts.get(fingerprint(question))
        if decided is None:
            self._open = question
            return Verdict(False, "client", reason="the client is asking the user", remedy="Wait for the answer")
        return decided

    def unanswered(self) -> dict[str, Any] | None:
        """Return the result that passes the open question to the client, or None."""
        if self._open is None:
            return None
        allowed = [each for each, decided in self._verdicts.items() if decided.allowed]
        name = fingerprint(self._open)
        state = self._sealer.seal(self._call, {"asked": name, "allowed": allowed})
        shown = form(self._open, everything=name == self._whole)
        asked = {"method": "elicitation/create", "params": {"mode": "form", **shown}}
        return {"resultType": "input_required", "inputRequests": {KEY: asked}, "requestState": state}


def _answered(response: Any) -> Verdict:
    if response is None or not hasattr(response, "action"):
        return Verdict(False, "client", reason="the client gave no answer", remedy="Call again to get a new question")
    return verdict(response.action, response.content)


def verdict(action: str, content: dict[str, Any] | None) -> Verdict:
    """Return the verdict of the user's answer; only `once` and `always` allow the call."""
    given = content or {}
    decision = given.get("decision") if action == "accept" else "no"
    if decision in ("once", "always"):
        return Verdict(True, "user", always=decision == "always")
    reason = str(given.get("reason") or "").strip()
    why = f"the user said no: {reason}" if reason else "the user said no"
    return Verdict(False, "user", reason=why, remedy="Ask what to do instead")


def wants_all(answer: Any) -> bool:
    """Return True if the user wants to see the question in full before deciding."""
    given = (getattr(answer, "content", None) or {}) if getattr(answer, "action", "") == "accept" else {}
    return bool(given.get("decision") == SHOW_ALL)


def form(question: Question, *, everything: bool) -> dict[str, Any]:
    """Return the text of the question and the schema of its answers."""
    from handrail.surfaces.approval_text import QuestionView, display, happening, whole  # noqa: PLC0415  needed for questions only

    view = whole() if everything else QuestionView(_ROWS)
    text = "\n".join([*happening(question, view), "", display(question, view)]).strip()
    return {"message": text, "requestedSchema": _schema(_ANSWERS | _MORE if view.cut else _ANSWERS)}


def _schema(answers: dict[str, str]) -> dict[str, Any]:
    decision = {
        "type": "string",
        "title": "Allow this?",
        "description": "; ".join(f"{answer}: {means}" for answer, means in answers.items()),
        "enum": [*answers],
    }
    reason = {"type": "string", "title": "Reason", "description": "A reason for the agent (optional)."}
    return {"type": "object", "properties": {"decision": decision, "reason": reason}, "required": ["decision"]}


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
