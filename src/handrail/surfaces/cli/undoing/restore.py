"""Implements `handrail restore PATH --at N`."""

import click

from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.undoing.undo_flow import carry_out, undo_options


@click.command("restore")
@click.argument("path", shell_complete=complete_paths.workspace_paths)
@click.option(
    "--at", type=int, required=True, metavar="N", help="Restore the state after history entry N; 0: before all entries."
)
@undo_options
def command(path: str, at: int, root: str, dry_run: bool, approve: str | None, as_json: bool) -> None:
    """Restore PATH to an earlier state: a file, or all recorded files of a directory."""
    carry_out(
        lambda history: history.restore(path, at, dry_run=dry_run), root, approve, as_json=as_json, dry_run=dry_run
    )
