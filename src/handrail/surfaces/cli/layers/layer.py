"""Implements `handrail layer`: lists the layers of a workspace; shows, applies and discards their changes."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from handrail.errors import HandrailError, did_you_mean
from handrail.kernel.layers.layer_store import DEFAULT, LayerStore
from handrail.ops.text.display import age, one_line, visible
from handrail.settings import APPROVE
from handrail.surfaces.cli.layers.keep_changes import NOT_KEPT, keep
from handrail.surfaces.cli.light.find_workspace import root_errors
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.light_options import echo_json, json_option, root_option
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver
from handrail.workspace import Workspace

_name = click.argument("name", default=DEFAULT, metavar="[NAME]")


@click.group("layer")
def command() -> None:
    """List the layers over a workspace; show, apply or discard their changes.

    NAME is the name of a layer; default: the layer that --layered uses.
    """


@command.command("list")
@root_option
@json_option
def list_layers(root: str, as_json: bool) -> None:
    """List the layers: name, age, and whether a process has it open."""
    store = _store(root)
    layers = [(name, store.age(name), store.is_open(name)) for name in store.names()]
    if as_json:
        echo_json({"layers": [{"name": name, "seconds": round(old), "in_use": used} for name, old, used in layers]})
        return
    for name, old, used in layers:
        click.echo(f"{age(old):>4}  {one_line(name)}{'  in use' if used else ''}")
    if not layers:
        click.echo("No layer lies over this workspace.")


@command.command("changes")
@_name
@root_option
@json_option
@click.option("--diff", is_flag=True, help="Also show each change.")
def changes(name: str, root: str, as_json: bool, diff: bool) -> None:
    """List the paths that differ between a layer and the workspace."""
    with _opened(root, name) as workspace:
        found = workspace.changes()
        if as_json:
            echo_json({"changes": [{"path": each.path, "kind": each.kind, "diff": each.diff} for each in found]})
            return
        for each in found:
            click.echo(f"{each.kind:>7}  {visible(each.path)}")
            if diff:
                click.echo(visible(each.diff))
        if not found:
            click.echo("Nothing changed.")


@command.command("apply")
@_name
@root_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who decides whether to apply the changes.")
def apply(name: str, root: str, approve: str | None) -> None:
    """Bring all changes of a layer into the workspace, after a question."""
    with _opened(root, name, approve=approve) as workspace:
        kept = keep(workspace)
    raise SystemExit(0 if kept else NOT_KEPT)


@command.command("discard")
@_name
@root_option
def discard(name: str, root: str) -> None:
    """Delete all changes of a layer."""
    with _opened(root, name) as workspace:
        workspace.discard()


@contextmanager
def _opened(root: str, name: str, approve: str | None = None) -> Iterator[Workspace]:
    names = _store(root).names()
    if name not in names and name != DEFAULT:
        raise click.UsageError(f"unknown layer {name}{did_you_mean(name, names)}")
    hints = AllowHints()
    with open_workspace(root, approver=terminal_approver(), tell=hints.append, layered=name, approve=approve) as opened:
        try:
            yield opened
        except HandrailError as error:
            raise click.ClickException(str(error)) from None


def _store(root: str) -> LayerStore:
    with root_errors(root):
        try:
            store = LayerStore.of(root)
        except OSError as error:
            place = f" ({error.filename})" if error.filename else ""
            raise click.ClickException(f"cannot read the layers of {root}: {error.strerror or error}{place}") from None
    return store
