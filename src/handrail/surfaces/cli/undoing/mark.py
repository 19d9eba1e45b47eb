"""Implements `handrail mark NAME`."""

import click

from handrail.errors import UndoError
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.options import json_option, root_option
from handrail.surfaces.cli.render import echo_json


@click.command("mark")
@click.argument("name")
@root_option
@json_option
def command(name: str, root: str, as_json: bool) -> None:
    """Set the mark NAME in the history: `handrail undo --to NAME` takes back everything that changes after it."""
    with open_workspace(root) as workspace:
        try:
            number = workspace.mark(name)
        except UndoError as error:
            raise click.ClickException(error.message) from None
    if as_json:
        echo_json({"mark": name.strip(), "entry": number}, indent=2)
    else:
        click.echo(f"Set the mark {name.strip()} as entry {number}")
