"""`handrail restore PATH --at N`"""

import click

from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.undo_flow import carry_out, undo_options


@click.command("restore")
@click.argument("path", shell_complete=complete_paths.workspace_paths)
@click.option(
    "--at", type=int, required=True, metavar="N", help="As it was after entry N of the history; 0: before all of them."
)
@undo_options
def command(path: str, at: int, root: str, dry_run: bool, approve: str | None, as_json: bool) -> None:
    """Make PATH what it was: a file, or all that the history knows of a directory."""
    carry_out(
        lambda history: history.restore(path, at, dry_run=dry_run), root, approve, as_json=as_json, dry_run=dry_run
    )
