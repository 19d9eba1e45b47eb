"""Implements `handrail config CLIENT`: prints or writes the configuration of an MCP client."""

import json

import click

from handrail.kernel.host.client_files import absolute, is_inside_text
from handrail.kernel.write.client_config_writer import ProjectFile, UserFile
from handrail.model.faults import Fault
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line
from handrail.settings import APPROVE
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.options import dialect_options, read_only_option, root_option
from handrail.surfaces.cli.terminal_access import refuse_unattended
from handrail.surfaces.client_config_text import CLIENTS, Unmergeable, entry, entry_in, merged, snippet
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import render


@click.command("config", epilog=f"CLIENT is one of {', '.join(CLIENTS)}.")
@click.argument("client", type=click.Choice([*CLIENTS]), metavar="CLIENT")
@root_option
@dialect_options
@read_only_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch.")
@click.option(
    "--file",
    "path",
    metavar="FILE",
    shell_complete=complete_paths.files,
    help="The configuration file; default: the client's own.",
)
@click.option("--write", is_flag=True, help="Back up the client's configuration, then add the entry.")
@click.option("--unattended", is_flag=True, help="Write --approve auto or host without a user at a terminal.")
def command(
    client: str,
    root: str,
    dialect: str | None,
    read_only: bool | None,
    approve: str | None,
    path: str | None,
    write: bool,
    **unattended: bool,
) -> None:
    """Print the configuration entry for CLIENT; with --write, add it to the client's configuration file."""
    kind = CLIENTS[client]
    place = absolute(root)
    extra = [*(["--read-only"] if read_only else []), *(["--approve", approve] if approve else [])]
    made = entry(kind, place, dialect, extra)
    target = absolute(path) if path else kind.file(place)
    if not write:
        click.echo(f"# {kind.title}: {target}", err=True)
        click.echo(snippet(kind, made), nl=False)
        return
    if approve in ("auto", "host"):
        refuse_unattended(f"config --approve {approve} --write", **unattended)
    in_project = is_inside_text(target, place) if path else kind.in_project
    file = ProjectFile(place, target, Limits()) if in_project else UserFile(target, Limits())
    old = _read(target, file)
    try:
        new = merged(kind, old, made)
    except Unmergeable as error:
        raise click.ClickException(f"{target} was not changed: {error}:\n{snippet(kind, made)}") from None
    if new == old:
        click.echo(f"{target} already has this entry")
        return
    before = entry_in(kind, old)
    backup = _write(target, file, new)
    click.echo(f"{'Added to' if before is None else 'Replaced in'} {target}")
    if before is not None:
        click.echo(f"  before: {one_line(json.dumps(before, ensure_ascii=False), 2000)}")
        click.echo(f"  now: {one_line(json.dumps(made, ensure_ascii=False), 2000)}")
    if backup:
        click.echo(f"A backup of the file is in {backup}")
    click.echo(f"Restart {kind.title} to see the tools")


def _read(path: str, file: ProjectFile | UserFile) -> str:
    try:
        return file.read()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} was not changed: it is not text") from None
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from None
    except Fault as fault:
        raise click.ClickException(f"cannot read {path}: {_message(fault)}") from None


def _write(path: str, file: ProjectFile | UserFile, text: str) -> str | None:
    """Replace the contents of the file and return the path of its backup, if there is one."""
    try:
        return file.replace(text)
    except OSError as error:
        raise click.ClickException(f"{path} was not changed: {error}") from None
    except Fault as fault:
        raise click.ClickException(f"{path} was not changed: {_message(fault)}") from None


def _message(fault: Fault) -> str:
    return render((COMMON,), "", fault, {}).message
