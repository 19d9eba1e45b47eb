"""The options that several commands share, and how they open a workspace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from handrail.dialects import DEFAULT, NAMES, find_dialect, load
from handrail.errors import HandrailError
from handrail.settings import APPROVE, SANDBOX
from handrail.surfaces.cli import complete_paths, light_options
from handrail.workspace import Workspace

_Function = Callable[..., Any]

dialect_option = click.option("--dialect", type=click.Choice(NAMES), help="The tool dialect to speak.")
root_option, json_option = light_options.root_option, light_options.json_option
read_only_option = click.option("--read-only", is_flag=True, default=None, help="Offer no tool that writes or runs.")
log_option = click.option(
    "--log", metavar="FILE", shell_complete=complete_paths.files, help="Where the session log goes."
)
sandbox_option = click.option("--sandbox", type=click.Choice(SANDBOX), help="What confines commands.")


def workspace_options(function: _Function) -> _Function:
    for option in (
        log_option,
        sandbox_option,
        read_only_option,
        click.option("--approve", type=click.Choice(APPROVE), help="Who approves what writes, runs or fetches."),
        root_option,
        dialect_option,
    ):
        function = option(function)
    return function


@contextmanager
def usage_errors(root: str) -> Iterator[None]:
    """What is wrong with the command line, its root or the configuration is for the person to put right."""
    try:
        with light_options.root_errors(root):
            yield
    except HandrailError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:  # nowhere to keep the state
        raise click.UsageError(f"cannot open the workspace {root}: {error}") from None


def open_workspace(root: str, *, approver: Any = None, tell: Any = None, **flags: Any) -> Workspace:
    with usage_errors(root):
        workspace = Workspace.from_settings(root, flags, approver=approver, tell=tell)
    for note in workspace.warnings:
        click.echo(f"handrail: {note}", err=True)
    if workspace.recovered:
        click.echo(f"handrail: {workspace.recovered} interrupted write(s) were rolled back", err=True)
    return workspace


def dialect_of(tool: str, named: str | None) -> str:
    """The dialect to speak: the named one, else the only one that has this tool."""
    if named:
        return named
    having = find_dialect(tool)
    if len(having) > 1:
        raise click.UsageError(f"{tool} is in several dialects; choose one with --dialect: {', '.join(having)}")
    return having[0] if having else _nearest(tool)


def _nearest(tool: str) -> str:
    """The dialect whose tools are worth listing to somebody who mistyped a name."""
    from difflib import get_close_matches  # noqa: PLC0415  only where it goes wrong

    homes = {known: name for name in NAMES for known in load(name).tools}
    return next((homes[each] for each in get_close_matches(tool, homes, 1)), DEFAULT)
