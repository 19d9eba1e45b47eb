"""Implements `handrail approvals test`: shows which rule would decide a call."""

import shlex
from collections.abc import Callable
from typing import Any

import click

from handrail.dialects import find_dialect
from handrail.errors import DeniedError, HandrailError
from handrail.library.history import History
from handrail.model.approval import KINDS
from handrail.ops.text.display import visible
from handrail.runtime.undo_plan import Plan
from handrail.surfaces.cli.light.call_tool import given_params
from handrail.surfaces.cli.light.open_workspace import dialect_of, open_workspace, usage_errors
from handrail.surfaces.cli.light_options import journal_errors
from handrail.surfaces.cli.options import dialect_options, json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.rule_trial import QuestionGate, RuleTrial, short_call, summary, try_call, why_not_others
from handrail.workspace import Workspace, internals


def try_undo(workspace: Workspace, kind: str, params: dict[str, Any]) -> RuleTrial:
    """Run an undo, a redo or a restore up to its question."""
    act, gate = _undo(kind, params), QuestionGate(workspace)
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
        with usage_errors(root):
            dialect_name, tool, given = short_call(tool.strip())
    if not isinstance(given, dict):
        raise click.UsageError("the parameters must be a JSON object")
    with open_workspace(root) as workspace:
        trial = try_undo(workspace, tool, given) if tool in KINDS else try_call(workspace, dialect_name, tool, given)
        decision = internals(workspace).rules.decide(trial.question) if trial.question else None
    said = summary(decision, trial)
    if as_json:
        others = decision.others if decision else ()
        why_not = [{"rule": placed.name, "why_not": why} for placed, why in others]
        by = [each.name for each in decision.by] if decision else []
        echo_json({"decision": said, "by": by, "others": why_not}, indent=2)
    else:
        click.echo(visible("\n".join([said, *why_not_others(decision)])))
    raise SystemExit(0 if decision and decision.allowed else 3)
