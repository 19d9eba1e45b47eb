"""Defines options whose import is cheap, for commands that must start fast."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from handrail.kernel.host.project_root import RootRefused, find_root
from handrail.kernel.journal.journal import JournalUnreadable
from handrail.model.faults import PathFault
from handrail.ops.text.display import visible
from handrail.surfaces.cli import complete_paths

_WHY_NOT_TAKEN = {
    "gone": "it no longer exists",
    "home": "it is or contains your home directory",
    "other_user": "it belongs to another user",
}


def _root(ctx: click.Context, _param: click.Parameter, given: str | None) -> str:
    """Return the given root, or find one and print which one it is."""
    return given if given is not None else found_workspace(silent=ctx.resilient_parsing)  # silent during completion


def found_workspace(*, silent: bool = False) -> str:
    """Find the workspace from the current directory upwards and print which one it is. Raises UsageError."""
    try:
        found = find_root()
    except RootRefused as refused:
        place, why = visible(refused.path), _WHY_NOT_TAKEN[refused.why]
        raise click.UsageError(f"cannot use {place} as the workspace: {why}; choose one with --root DIR") from None
    if found.path != "." and not silent:
        click.echo(f"handrail: using the workspace {visible(found.path)}, which has a {found.marker}", err=True)
    return found.path


root_option = click.option(
    "--root",
    metavar="DIR",
    callback=_root,
    shell_complete=complete_paths.directories,
    help="The workspace; default: found from the current directory upwards.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")


@contextmanager
def root_errors(root: str) -> Iterator[None]:
    """Report a root that cannot be opened as a usage error."""
    try:
        yield
    except PathFault as fault:
        from handrail.tools.fault_errors import workspace_error  # noqa: PLC0415  needed for errors only

        raise click.UsageError(str(workspace_error(root, fault))) from None


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
