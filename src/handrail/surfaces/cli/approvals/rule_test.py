"""Runs a call or an undo up to its approval question, to test the rules; the call changes nothing."""

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from handrail.dialects import find_dialect, load
from handrail.errors import DeniedError, HandrailError
from handrail.kernel.host.session_log import SessionLog
from handrail.library.history import History
from handrail.model.approval import KINDS, Question, Verdict
from handrail.ops.text.display import visible
from handrail.policy.rule_match import Decision
from handrail.policy.rule_text import EDIT, FETCH, RUN
from handrail.runtime.session import Session
from handrail.runtime.undo_plan import Plan
from handrail.surfaces.cli.light.call_tool import given_params
from handrail.surfaces.cli.light.open_workspace import dialect_of, open_workspace
from handrail.surfaces.cli.light_options import journal_errors
from handrail.surfaces.cli.options import dialect_options, json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.tools.router import ToolRouter
from handrail.workspace import Workspace, internals

_NEW_CONTENT = "\x00 a content that no file has, so that a test of a change changes something\n"


class RuleTrial(NamedTuple):
    """Holds the question that a call would ask, and why the call would fail."""

    question: Question | None
    """None if the call asks no question and checks no rule."""
    failed: str = ""
    """The error message; empty if the call does not fail."""


class _Gate:
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


@click.command("test")
@click.argument("tool", metavar="TOOL | CALL")
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE …]")
@dialect_options
@root_option
@json_option
def test(tool: str, arguments: tuple[str, ...], dialect: str | None, root: str, as_json: bool) -> None:
    """Show which rule would decide a call.

    Also shown is why the other rules would not. The call changes nothing.

    CALL is a call in the form of a rule: "git push origin", "edit src/a.py" or "fetch docs.python.org". Or name a tool
    and give the parameters as for `handrail call`. To test an undo, use `undo entries=[N]`, `undo since=N` or `undo`;
    also `redo` and `restore path=PATH at=N`.
    """
    named = tool in KINDS or dialect or find_dialect(tool)
    if not named and arguments and not all("=" in each or each[:1] in "-{[" for each in arguments):
        words = shlex.quote(" ".join((tool, *arguments)))
        raise click.UsageError(f"unknown tool {tool}; write a call of several words as {words}")
    if named or arguments or " " not in tool.strip():
        dialect_name = dialect_of(tool, dialect)
        given = given_params(dialect_name, tool, arguments)
    else:
        dialect_name, tool, given = _short_call(tool.strip())
    if not isinstance(given, dict):
        raise click.UsageError("the parameters must be a JSON object")
    with open_workspace(root) as workspace:
        trial = try_undo(workspace, tool, given) if tool in KINDS else try_call(workspace, dialect_name, tool, given)
        decision = internals(workspace).rules.decide(trial.question) if trial.question else None
    summary = _summary(decision, trial)
    if as_json:
        others = decision.others if decision else ()
        why_not = [{"rule": placed.name, "why_not": why} for placed, why in others]
        by = [each.name for each in decision.by] if decision else []
        echo_json({"decision": summary, "by": by, "others": why_not}, indent=2)
    else:
        click.echo(visible("\n".join([summary, *_why_not_others(decision)])))
    raise SystemExit(0 if decision and decision.allowed else 3)


def _short_call(text: str) -> tuple[str, str, dict[str, Any]]:
    """Return a dialect, a tool and parameters that do what a call in the form of a rule says."""
    kind, _, rest = text.partition(" ")
    if kind == FETCH:
        url = rest.strip() if "://" in rest else f"https://{rest.strip()}/"
        return "copilot", "fetch_webpage", {"url": url}
    if kind == EDIT:
        words = shlex.split(rest)
        if len(words) != 1 or "*" in words[0]:
            raise click.UsageError("name one file to test, without *, as in `edit src/a.py`")
        return "file", "file.write", {"path": words[0], "content": _NEW_CONTENT}
    return "gemini", "run_shell_command", {"command": rest if kind == RUN else text}


def _summary(decision: Decision | None, trial: RuleTrial) -> str:
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


def _why_not_others(decision: Decision | None) -> list[str]:
    return [f"  not {placed.name}: {why}" for placed, why in (decision.others if decision else ())]
