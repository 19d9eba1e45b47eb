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

from handrail.faults import Cancelled
from handrail.kernel.gate import Question, Verdict
from handrail.kernel.values import Change, Put, Remove, Restore
from handrail.policy.approvals import how_to_allow, nobody
from handrail.surfaces.mcp.sealed import Sealer, digest

KEY = "approval"
SCHEMA = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Allow this?",
            "description": "once: this call; always: exactly this call, from now on; no: not at all",
            "enum": ["once", "always", "no"],
        },
        "reason": {"type": "string", "title": "Reason", "description": "What the agent should know (optional)."},
    },
    "required": ["decision"],
}

_WAYS = ("Use a client that supports elicitation", "start the server with --approve host or --approve auto")

Ask = Callable[[Question], Verdict]

asking: ContextVar[Ask] = ContextVar("asking")
"""How the call that runs in this context asks its client."""


def ask_the_client(question: Question) -> Verdict:
    """The asker of every session that belongs to an MCP client."""
    return asking.get()(question)


def ask_nobody(question: Question) -> Verdict:
    return nobody(question, *_WAYS)


class Dialogue:
    """A dialogue within the call, for the revisions in which a server may send requests."""

    def __init__(self, context: Any) -> None:
        self._context, self._loop = context, asyncio.get_running_loop()
        self._answer: Future[Any] | None = None
        self._stopped = False

    def __call__(self, question: Question) -> Verdict:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  with a server it is loaded already

        self._answer = asyncio.run_coroutine_threadsafe(self._elicit(question), self._loop)
        if self._stopped:
            self._answer.cancel()
        try:
            answer = self._answer.result()
        except CancelledError:
            raise Cancelled from None
        except MCPError as error:
            remedy = how_to_allow(question, *_WAYS)
            return Verdict(False, "client", reason=f"the client did not ask: {error}", remedy=remedy)
        return verdict(answer.action, answer.content)

    async def _elicit(self, question: Question) -> Any:
        return await self._context.session.elicit_form(message(question), SCHEMA, self._context.request_id)

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
        if state is not None:
            facts = sealer.open(call, state)
            self._verdicts = {each: Verdict(True, "person") for each in facts["allowed"]}
            self._verdicts[facts["asked"]] = _answered(responses.get(KEY))

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
        state = self._sealer.seal(self._call, {"asked": fingerprint(self._open), "allowed": allowed})
        asked = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": message(self._open), "requestedSchema": SCHEMA},
        }
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


def message(question: Question, most: int = 200) -> str:
    from handrail.surfaces.cli.asking import display, happening  # noqa: PLC0415  only where somebody is asked

    return "\n".join([*happening(question, colour=False, most=most), "", display(question)]).strip()


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
