"""Runs a call up to its approval question, to test the rules; the call changes nothing."""

import shlex
from typing import Any, NamedTuple

from handrail.dialects import load
from handrail.errors import RuleError
from handrail.kernel.host.session_log import SessionLog
from handrail.model.approval import Question, Verdict
from handrail.policy.rule_match import Decision
from handrail.policy.rule_text import EDIT, FETCH, RUN
from handrail.runtime.session import Session
from handrail.tools.router import ToolRouter
from handrail.workspace import Workspace, internals

_NEW_CONTENT = "\x00 a content that no file has, so that a test of a change changes something\n"


class RuleTrial(NamedTuple):
    """Holds the question that a call would ask, and why the call would fail."""

    question: Question | None
    """None if the call asks no question and checks no rule."""
    failed: str = ""
    """The error message; empty if the call does not fail."""


class QuestionGate:
    """Records the question and refuses it; lets a call that only reads go on unless a rule denies it."""

    def __init__(self, workspace: Workspace) -> None:
        self._rules = internals(workspace).rules
        self.session = Session(internals(workspace).services, self._stop, self._rules.may_forbid)
        self.question: Question | None = None

    def _stop(self, question: Question) -> Verdict:
        self.question = question
        if question.unasked and self._rules.decide(question).allowed is not False:
            return Verdict(True, question.unasked)
        return Verdict(False, "test", reason="this is only a test")


def try_call(workspace: Workspace, dialect: str, tool: str, params: Any) -> RuleTrial:
    """Run a tool call up to its question."""
    gate, log = QuestionGate(workspace), SessionLog(None, level="off", chars=0, session="test")
    result = ToolRouter(load(dialect), gate.session, log).call(tool, params)
    return RuleTrial(gate.question, result.error.message if result.error else "")


def short_call(text: str) -> tuple[str, str, dict[str, Any]]:
    """Return a dialect, a tool and parameters that do what a call in the form of a rule says."""
    kind, _, rest = text.partition(" ")
    if kind == FETCH:
        url = rest.strip() if "://" in rest else f"https://{rest.strip()}/"
        return "copilot", "fetch_webpage", {"url": url}
    if kind == EDIT:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise RuleError(f"{rest}: {error}") from None
        if len(words) != 1 or "*" in words[0]:
            raise RuleError("name one file to test, without *, as in `edit src/a.py`")
        return "file", "file.write", {"path": words[0], "content": _NEW_CONTENT}
    return "gemini", "run_shell_command", {"command": rest if kind == RUN else text}


def summary(decision: Decision | None, trial: RuleTrial) -> str:
    unasked = trial.question is None or trial.question.unasked
    if decision is None or (unasked and decision.allowed is not False):
        failed = trial.failed
        return f"The call would fail before any question: {failed}" if failed else "The call would need no approval"
    if decision.doubt:
        return f"The call would need approval under every policy: {decision.doubt}"
    if decision.allowed is None:
        return "No rule decides this call: it would need approval"
    verb = "Approved" if decision.allowed else "Forbidden"
    return f"{verb} by {', '.join(f'{each.name}: {each.rule.covers}' for each in decision.by)}"


def why_not_others(decision: Decision | None) -> list[str]:
    return [f"  not {placed.name}: {why}" for placed, why in (decision.others if decision else ())]
