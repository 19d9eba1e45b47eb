"""`handrail undo [N | --since N | --session S]`"""

import click

from handrail.surfaces.cli.undoing import carry_out, undo_options


@click.command("undo")
@click.argument("n", type=int, required=False)
@click.option("--since", type=int, metavar="N", help="Undo entry N and all after it.")
@click.option("--session", metavar="S", help="Undo all that a session did.")
@undo_options
def command(
    n: int | None, since: int | None, session: str | None, root: str, dry_run: bool, approve: str | None, as_json: bool
) -> None:
    """Take back entry N of the history, or the last one that still stands."""
    if sum(choice is not None for choice in (n, since, session)) > 1:
        raise click.UsageError("choose one of N, --since and --session")
    carry_out(
        lambda history: history.undo(n, since=since, of=session, dry_run=dry_run),
        root,
        approve,
        as_json=as_json,
        dry_run=dry_run,
    )
