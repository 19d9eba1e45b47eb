"""`handrail completion SHELL`"""

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL, for example: eval "$(handrail completion bash)"."""
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "handrail", "_HANDRAIL_COMPLETE").source())
