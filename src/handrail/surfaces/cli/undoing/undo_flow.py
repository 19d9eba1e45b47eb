"""Runs undo, redo and restore for their commands and prints the result."""

import shlex
from collections.abc import Callable
from typing import Any

import click

from handrail.errors import DeniedError, HandrailError
from handrail.library.history import History
from handrail.model.files import Change, Restore
from handrail.model.paths import quote, unquote
from handrail.ops.text.change_preview import change_diff
from handrail.ops.text.display import visible
from handrail.runtime.undo_plan import Plan
from handrail.settings import APPROVE
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.light_options import journal_errors, json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver

_WHY = {
    "changed": "a later change would be overwritten",
    "in_the_way": "another file or directory is there now",
    "not_kept": "its content was not recorded",
    "damaged": "its content in the journal is damaged",
    "unreadable": "it cannot be read",
}
_DID = {"undo": "Undid", "redo": "Redid", "restore": "Restored from"}

_MOST_PATHS = 10
"""The most paths that the hint about the other paths names."""

_Function = Callable[..., Any]


def undo_options(function: _Function) -> _Function:
    """Add the options of undo, redo and restore to a command."""
    for option in (
        json_option,
        click.option("--approve", type=click.Choice(APPROVE), help="Who approves the change."),
        click.option("--dry-run", is_flag=True, help="Show the changes without making them."),
        root_option,
    ):
        function = option(function)
    return function


def carry_out(act: Callable[[History], Plan], root: str, approve: str | None, *, as_json: bool, dry_run: bool) -> None:
    """Run one operation on the history, print its plan and end the process with an exit code."""
    with open_workspace(root, approver=terminal_approver(one_call=True), approve=approve) as workspace:
        try:
            with journal_errors():
                plan = act(workspace.history())
        except HandrailError as error:
            if not error.suggestion:
                raise click.ClickException(error.message) from None
            click.echo(visible(f"✗ {error.message}\n  Suggestion: {error.suggestion}"), err=True)
            AllowHints([visible(error.allow)]).show()
            raise SystemExit(3 if isinstance(error, DeniedError) else 1) from None
    if as_json:
        echo_json(_facts(plan), indent=2)
    else:
        _show(plan, dry_run=dry_run)
    raise SystemExit(1 if plan.conflicts else 0)


def _show(plan: Plan, *, dry_run: bool) -> None:
    if plan.conflicts:
        click.echo("Nothing was changed: these files cannot be restored:", err=True)
        for conflict in plan.conflicts:
            click.echo(visible(f"  {quote(conflict.path)}: {_WHY[conflict.why]}\n{conflict.diff}".rstrip()), err=True)
        if others := _other_paths(plan):
            click.echo(f"To undo the other paths only: handrail undo {plan.numbers[0]} {others}", err=True)
        return
    if dry_run:
        click.echo(visible("".join(map(change_diff, plan.changes))), nl=False)
    numbers = ", ".join(map(str, plan.numbers)) or "before all entries"
    part = "part of " if plan.kind == "undo" and not plan.whole else ""
    names = [name for change in plan.changes for name in _names(change)]
    did = f"Would {plan.kind}" if dry_run else _DID[plan.kind]
    click.echo(f"{did} {part}{numbers}: {len(names)} change{'s' * (len(names) != 1)}")
    for name in names:
        click.echo(visible(f"  {name}") + ("  (merged)" if name in map(quote, plan.merged) else ""))


def _names(change: Change) -> list[str]:
    within = change.inner_changes() if isinstance(change, Restore) else ()
    return [change.path, *(quote(f"{unquote(change.path)}/{rel}") for rel, _, _ in within)]


def _other_paths(plan: Plan) -> str:
    """Return the paths without a conflict as arguments for a shell; empty if they cannot be undone alone."""
    if plan.kind != "undo" or len(plan.entries) != 1 or not plan.whole:
        return ""
    blocked = {conflict.path for conflict in plan.conflicts}
    names = [name for change in plan.changes for name in _names(change)]
    free = [name for name in names if not any(f"{each}/".startswith(f"{unquote(name)}/") for each in blocked)]
    return " ".join(map(shlex.quote, free)) if len(free) <= _MOST_PATHS else "PATH…"


def _facts(plan: Plan) -> dict[str, Any]:
    return {
        "kind": plan.kind,
        "entries": list(plan.numbers),
        "done": plan.done,
        "changes": [{"path": change.path, "diff": change_diff(change)} for change in plan.changes],
        "merged": [quote(path) for path in plan.merged],
        "conflicts": [{"path": quote(each.path), "why": each.why, "diff": each.diff} for each in plan.conflicts],
    }
