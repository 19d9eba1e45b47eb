"""Calls, and undos, that are made only as far as the question whether they may be made."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from handrail.dialects import load
from handrail.errors import DeniedError, HandrailError
from handrail.history import History, Plan
from handrail.kernel.host.session_log import SessionLog
from handrail.model.approval import Question, Verdict
from handrail.runtime.session import Session
from handrail.surfaces.cli.light_options import journal_errors
from handrail.tools.router import ToolRouter
from handrail.workspace import Workspace, internals


class Tried(NamedTuple):
    question: Question | None
    """None: nobody would be asked, and no rule looked at."""
    failed: str = ""


class _Gate:
    """Says no to every question; what only reads, and is not forbidden, may go on."""

    def __init__(self, workspace: Workspace) -> None:
        self._rules = internals(workspace).rules
        self.session = Session(internals(workspace).services, self._stop, self._rules.may_forbid)
        self.question: Question | None = None

    def _stop(self, question: Question) -> Verdict:
        self.question = question
        if question.unasked and self._rules.decide(question).allowed is not False:
            return Verdict(True, question.unasked)
        return Verdict(False, "test", reason="this is only a test")


def try_call(workspace: Workspace, dialect: str, tool: str, params: Any) -> Tried:
    gate, log = _Gate(workspace), SessionLog(None, level="off", chars=0, session="test")
    result = ToolRouter(load(dialect), gate.session, log).call(tool, params)
    return Tried(gate.question, result.error.message if result.error else "")


def try_undo(workspace: Workspace, kind: str, params: dict[str, Any]) -> Tried:
    act, gate = _undo(kind, params), _Gate(workspace)
    try:
        with journal_errors():
            plan = act(History(gate.session))
    except DeniedError:
        return Tried(gate.question)
    except HandrailError as error:
        return Tried(None, error.message)
    return Tried(gate.question, "some files cannot be put back" if plan.conflicts else "")


def _undo(kind: str, params: dict[str, Any]) -> Callable[[History], Plan]:
    """What is tried, named as rules name it: the entries of an undo, and what a restore goes back to."""
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
    raise click.UsageError("undo takes entries=[N] or since=N or nothing, redo nothing, restore path=PATH at=N")
