"""Implements `handrail undo [N [PATH…] | --since N | --to MARK | --session S]`."""

from typing import Any

import click

from handrail.library.history import History
from handrail.runtime.undo_plan import Plan
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.undoing.undo_flow import carry_out, undo_options


@click.command("undo")
@click.argument("n", type=int, required=False)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_paths.workspace_paths)
@click.option("--since", type=int, metavar="N", help="Undo entry N and all later entries.")
@click.option("--to", metavar="MARK", help="Undo everything since this mark.")
@click.option("--session", metavar="S", help="Undo all entries of session S; with --to, only those since the mark.")
@undo_options
def command(
    n: int | None,
    paths: tuple[str, ...],
    since: int | None,
    to: str | None,
    session: str | None,
    *,
    dry_run: bool,
    **options: Any,
) -> None:
    """Undo history entry N, or the last entry that is not undone; with PATHs, only its changes to these paths."""
    if sum(choice is not None for choice in (n, since, to, session if to is None else None)) > 1:
        raise click.UsageError("choose one of N, --since, --to and --session; only --to and --session go together")

    def act(history: History) -> Plan:
        return history.undo(n, paths, since=since, to=to, of=session, dry_run=dry_run)

    carry_out(act, dry_run=dry_run, **options)
