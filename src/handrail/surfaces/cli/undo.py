"""Implements `handrail undo [N [PATH…] | --since N | --session S]`."""

from typing import Any

import click

from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.undo_flow import carry_out, undo_options


@click.command("undo")
@click.argument("n", type=int, required=False)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_paths.workspace_paths)
@click.option("--since", type=int, metavar="N", help="Undo entry N and all later entries.")
@click.option("--session", metavar="S", help="Undo all entries of session S.")
@undo_options
def command(
    n: int | None, paths: tuple[str, ...], since: int | None, session: str | None, *, dry_run: bool, **options: Any
) -> None:
    """Undo history entry N, or the last entry that is not undone; with PATHs, only its changes to these paths."""
    if sum(choice is not None for choice in (n, since, session)) > 1:
        raise click.UsageError("choose one of N, --since and --session")
    carry_out(
        lambda history: history.undo(n, paths, since=since, of=session, dry_run=dry_run), dry_run=dry_run, **options
    )
