"""Brings the changes of a layer into its root for a command, and says what became of them."""

import click

from handrail.errors import DeniedError
from handrail.ops.text.display import one_line, visible
from handrail.workspace import Workspace

NOT_KEPT = 3
"""The exit status if the changes were not kept."""


def keep(workspace: Workspace, *, diff: bool = False) -> bool:
    """Bring the changes into the root after a question. Returns False if they were not kept.

    With `diff`, show them before; a question in a terminal shows them anyway.
    """
    changes = workspace.changes()
    for each in changes if diff else ():
        click.echo(visible(each.diff), err=True)
    if not changes:
        click.echo("handrail: nothing changed", err=True)
        return True
    try:
        plan = workspace.apply(running="end")
    except DeniedError as error:
        click.echo(f"handrail: {len(changes)} change(s) not kept: {one_line(error.message)}", err=True)
        return False
    if plan.conflicts:
        names = ", ".join(one_line(each.path) for each in plan.conflicts)
        click.echo(f"handrail: nothing kept: these files changed meanwhile: {names}", err=True)
        return False
    click.echo(f"handrail: {len(plan.changes)} change(s) kept; handrail undo takes them back", err=True)
    return True
