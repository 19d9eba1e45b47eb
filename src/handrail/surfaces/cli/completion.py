"""Implements `handrail completion SHELL`."""

import click
from click.shell_completion import get_completion_class

from handrail.kernel.host.path_completion import VARIABLE


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL (bash, zsh or fish), for example: eval "$(handrail completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"cannot complete commands in {shell}")
    click.echo(found(ctx.find_root().command, {}, "handrail", VARIABLE).source())
