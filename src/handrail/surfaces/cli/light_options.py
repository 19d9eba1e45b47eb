"""Options that load nothing else, for commands that must be quick."""

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
    "gone": "it does not exist any more",
    "home": "it is or contains your home directory",
    "other_user": "it belongs to another user",
}


def _root(ctx: click.Context, _param: click.Parameter, given: str | None) -> str:
    """Returns the root that was given, or finds one and says which."""
    if given is not None:
        return given
    try:
        found = find_root()
    except RootRefused as refused:
        place, why = visible(refused.path), _WHY_NOT_TAKEN[refused.why]
        raise click.UsageError(f"{place} is not taken as the workspace: {why}; choose one with --root DIR") from None
    if found.path != "." and not ctx.resilient_parsing:  # completion stays quiet
        click.echo(f"handrail: using the workspace {visible(found.path)}, which has a {found.marker}", err=True)
    return found.path


root_option = click.option(
    "--root",
    metavar="DIR",
    callback=_root,
    shell_complete=complete_paths.directories,
    help="The workspace; looked for from the current directory upwards if not given.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")


@contextmanager
def root_errors(root: str) -> Iterator[None]:
    """A root that cannot be opened is for the person to put right."""
    try:
        yield
    except PathFault as fault:
        from handrail.tools.fault_errors import workspace_error  # noqa: PLC0415  only when something is wrong

        raise click.UsageError(str(workspace_error(root, fault))) from None


@contextmanager
def journal_errors() -> Iterator[None]:
    try:
        yield
    except JournalUnreadable as error:
        raise click.ClickException(f"the journal {error.filename} cannot be read: {error.strerror}") from None


def echo_json(value: Any, indent: int | None = None) -> None:
    from handrail.surfaces.cli.render import echo_json as echo  # noqa: PLC0415  it loads what most listings do not need

    echo(value, indent)
