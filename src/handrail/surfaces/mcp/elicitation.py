"""Approvals over MCP: the client asks the person, in the way of its protocol revision.

Until 2025-11-25 the server sends an elicitation request and the call waits. From 2026-07-28 on the call ends with the
question and a sealed state; the client asks, then calls again with both, and the tool is worked out anew. The answer
counts only for the very change that was shown.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from typing import Any

from handrail.model.approval import Question, Verdict
from handrail.model.faults import Cancelled
from handrail.model.files import Change, Put, Remove, Restore
from handrail.policy.policy import nobody, refused
from handrail.surfaces.mcp.sealed_state import Sealer, digest

KEY = "approval"
SHOW_ALL = "show all"
_ROWS = 200
"""How much of a change a question shows before it is folded."""
_ANSWERS = {"once": "this call", "always": "exactly this call, from now on", "no": "not at all"}
_MORE = {SHOW_ALL: "ask again, with nothing left out"}

_WAYS = ("Use a client that supports elicitation", "start the server with --approve host or --approve auto")
_WITH_TOKEN = ("Start the server without --no-token, so that it can ask", "with --approve auto")

Ask = Callable[[Question], Verdict]

asking: ContextVar[Ask] = ContextVar("asking")
"""How the call that runs in this context asks its client."""


def ask_the_client(question: Question) -> Verdict:
    """The asker of every session that belongs to an MCP client."""
    return asking.get()(question)


def ask_nobody(question: Question) -> Verdict:
    return nobody(question, *_WAYS)


def ask_no_stranger(question: Question) -> Verdict:
    """Refuses: over HTTP without a token a command of the agent's own could be the client, and answer."""
    return refused(question, "nobody", "a server without a token asks nobody", *_WITH_TOKEN)


class Dialogue:
    """A dialogue within the call, for the revisions in which a server may send requests."""

    def __init__(self, context: Any) -> None:
        self._context, self._loop = context, asyncio.get_running_loop()
        self._answer: Future[Any] | None = None
        self._stopped = False

    def __call__(self, question: Question) -> Verdict:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  with a server it is loaded already

        try:
            answer = self._elicit(question)
            if wants_all(answer):
                answer = self._elicit(question, everything=True)
        except CancelledError:
            raise Cancelled from None
        except MCPError as error:
            return refused(question, "client", f"the client did not ask: {error}", *_WAYS)
        return verdict(answer.action, answer.content)

    def _elicit(self, question: Question, *, everything: bool = False) -> Any:
        asked = form(question, everything=everything)
        sent = self._context.session.elicit_form(asked["message"], asked["requestedSchema"], self._context.request_id)
        self._answer = asyncio.run_coroutine_threadsafe(sent, self._loop)
        if self._stopped:
            self._answer.cancel()
        return self._answer.result()

    def stop(self) -> None:
        """Nobody waits for the answer any more."""
        self._stopped = True
        if self._answer is not None:
            self._answer.cancel()


class Rounds:
    """A dialogue over several calls, for the stateless revision."""

    def __init__(self, sealer: Sealer, call: str, state: str | None, responses: dict[str, Any]) -> None:
        """`call` names the client, the tool and its arguments."""
        self._sealer, self._call = sealer, call
        self._verdicts: dict[str, Verdict] = {}
        self._open: Question | None = None
        self._whole = ""
        """The question that is to be shown whole."""
        if state is not None:
            facts = sealer.open(call, state)
            self._verdicts = {each: Verdict(True, "person") for each in facts["allowed"]}
            answer = responses.get(KEY)
            if wants_all(answer):
                self._whole = facts["asked"]
            else:
                self._verdicts[facts["asked"]] = _answered(answer)

    def __call__(self, question: Question) -> Verdict:
        decided = self._verdicts.get(fingerprint(question))
        if decided is None:
            self._open = question
            return Verdict(False, "client", reason="the client is being asked", remedy="Wait for the answer")
        return decided

    def unanswered(self) -> dict[str, Any] | None:
        """The result that hands the open question to the client."""
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
        return Verdict(False, "client", reason="the client gave no answer", remedy="Call again to be asked again")
    return verdict(response.action, response.content)


def verdict(action: str, content: dict[str, Any] | None) -> Verdict:
    """What the person said. Only a clear yes is one."""
    said = content or {}
    decision = said.get("decision") if action == "accept" else "no"
    if decision in ("once", "always"):
        return Verdict(True, "person", always=decision == "always")
    reason = str(said.get("reason") or "").strip()
    why = f"the person said no: {reason}" if reason else "the person said no"
    return Verdict(False, "person", reason=why, remedy="Ask what to do instead")


def wants_all(answer: Any) -> bool:
    """Not a decision, but the wish to see what it is about."""
    said = (getattr(answer, "content", None) or {}) if getattr(answer, "action", "") == "accept" else {}
    return bool(said.get("decision") == SHOW_ALL)


def form(question: Question, *, everything: bool) -> dict[str, Any]:
    """The question, and the answers that it may have."""
    from handrail.surfaces.approval_text import QuestionView, display, happening, whole  # noqa: PLC0415  only where it is asked

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
    reason = {"type": "string", "title": "Reason", "description": "What the agent should know (optional)."}
    return {"type": "object", "properties": {"decision": decision, "reason": reason}, "required": ["decision"]}


def fingerprint(question: Question) -> str:
    """The question with all that would happen: another change is another question."""
    facts = {name: value for name, value in question._asdict().items() if name != "changes"}
    shown = {**facts, "effects": question.effects.value}
    return digest(shown, [_facts(change) for change in question.changes])


def _facts(change: Change) -> list[Any]:
    """What is there before and after."""
    base = change.base if isinstance(change, Put | Remove | Restore) else None
    after = change.data if isinstance(change, Put) else None
    if isinstance(change, Restore) and change.to is not None:
        after = change.to.data
    return [type(change).__name__, change.path, base and base.data, after]
