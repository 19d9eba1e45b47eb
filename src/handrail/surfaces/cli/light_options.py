"""Defines options whose import is cheap, for commands that must start fast."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from handrail.kernel.journal.journal import JournalUnreadable
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light.find_workspace import found_workspace


def _root(ctx: click.Context, _param: click.Parameter, given: str | None) -> str:
    """Return the given root, or find one and print which one it is; with `--image` there is none."""
    if ctx.params.get("image"):
        if given is not None:
            raise click.UsageError("give --root or --image, not both")
        return ""
    return given if given is not None else found_workspace(silent=ctx.resilient_parsing)  # silent during completion


root_option = click.option(
    "--root",
    metavar="DIR",
    callback=_root,
    shell_complete=complete_paths.directories,
    help="The workspace; default: found from the current directory upwards.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")


@contextmanager
def journal_errors() -> Iterator[None]:
    """Report a journal that cannot be read as an error of the command."""
    try:
        yield
    except JournalUnreadable as error:
        raise click.ClickException(f"cannot read the journal {error.filename}: {error.strerror}") from None


def echo_json(value: Any, indent: int | None = None) -> None:
    """Print one JSON document; import the printer only now."""
    from handrail.surfaces.cli.render import echo_json as echo  # noqa: PLC0415  most lists do not need it

    echo(value, indent)
