"""Implements `handrail redo`."""

import click

from handrail.surfaces.cli.undoing.undo_flow import carry_out, undo_options


@click.command("redo")
@undo_options
def command(root: str, dry_run: bool, approve: str | None, as_json: bool) -> None:
    """Undo the last undo."""
    carry_out(lambda history: history.redo(dry_run=dry_run), root, approve, as_json=as_json, dry_run=dry_run)
