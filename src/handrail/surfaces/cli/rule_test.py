"""Runs a call or an undo up to its approval question, to test the rules; the call changes nothing."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from handrail.dialects import load
from handrail.errors import DeniedError, HandrailError
from handrail.history import History
from handrail.kernel.host.session_log import SessionLog
from handrail.model.approval import Question, Verdict
from handrail.runtime.session import Session
from handrail.runtime.undo_plan import Plan
from handrail.surfaces.cli.light_options import journal_errors
from handrail.tools.router import ToolRouter
from handrail.workspace import Workspace, internals


class RuleTrial(NamedTuple):
    """Holds the question that a call would ask, and why the call would fail."""

    question: Question | None
    """None if the call asks no question and checks no rule."""
    failed: str = ""
    """The error message; empty if the call does not fail."""


class _Gate:
    """Records the question and refuses it; a call that only reads goes on unless a rule forbids it."""

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
    gate, log = _Gate(workspace), SessionLog(None, level="off", chars=0, session="test")
    result = ToolRouter(load(dialect), gate.session, log).call(tool, params)
    return RuleTrial(gate.question, result.error.message if result.error else "")


def try_undo(workspace: Workspace, kind: str, params: dict[str, Any]) -> RuleTrial:
    """Run an undo, a redo or a restore up to its question."""
    act, gate = _undo(kind, params), _Gate(workspace)
    try:
        with journal_errors():
            plan = act(History(gate.session))
    except DeniedError:
        return RuleTrial(gate.question)
    except HandrailError as error:
        return RuleTrial(None, error.message)
    return RuleTrial(gate.question, "some files cannot be restored" if plan.conflicts else "")


def _undo(kind: str, params: dict[str, Any]) -> Callable[[History], Plan]:
    """Return the operation that the parameters name; the names are those that rules match."""
    match kind, params:
        case "undo", {"entries": [int(n)], **others} if not others:
            return lambda history: history.undo(n)
        case "undo", {"since": int(n), **others} if not others:
            return lambda history: history.undo(since=n)
        case "restore", {"path": str(path), "at": int(at), **others} if not others:
            return lambda history: history.restore(path, at)
        case "undo", {**others} if not others:
            return lambda history: history.undo()
        case "redo", {**others} if not others:
            return lambda history: history.redo()
    raise click.UsageError(
        "undo takes entries=[N], since=N or no parameter; redo takes none; restore takes path=PATH at=N"
    )
