"""Implements `handrail config CLIENT`: prints, writes or checks the configuration of an MCP client."""

import json
from typing import Any

import click

from handrail.kernel.host.client_files import absolute, is_inside_text, on_path
from handrail.kernel.host.terminal import user_is_here
from handrail.kernel.write.client_config_writer import ProjectFile, UserFile
from handrail.model.faults import Fault
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line
from handrail.settings import APPROVE
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light.find_workspace import found_workspace
from handrail.surfaces.cli.options import NearChoice, dialect_options, read_only_option
from handrail.surfaces.cli.terminal_access import refuse_unattended
from handrail.surfaces.clients.client_check import NotChecked, list_tools
from handrail.surfaces.clients.client_plan import Choices, ConfigPlace, ConfigPlan, FilePlan, make_plan, server_file
from handrail.surfaces.clients.client_records import CLIENTS, NAME, ClientKind
from handrail.surfaces.clients.config_merge import Unmergeable, merged, snippet, value_at
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import render

_NAMES = [*CLIENTS]
_EPILOG = f"\b\nCLIENT is one of:\n  {'  '.join(_NAMES[:6])}\n  {'  '.join(_NAMES[6:])}"
_HANDRAIL = "handrail"
"""The answer that leaves the approval to the server, which is its default."""
_APPROVE = click.Choice([_HANDRAIL, *APPROVE])
_ON_OFF = click.Choice(["on", "off"])
_File = ProjectFile | UserFile


@click.command("config", epilog=_EPILOG)
@click.argument("client", type=NearChoice([*CLIENTS]), metavar="CLIENT")
@click.option(
    "--root",
    metavar="DIR",
    shell_complete=complete_paths.directories,
    help="The workspace; default: found from the current directory upwards, if the client needs it.",
)
@dialect_options
@read_only_option
@click.option("--scope", type=click.Choice(["project", "user"]), help="Configure this project, or all of the user's.")
@click.option("--approve", type=_APPROVE, help="Who approves calls that write, run or fetch.")
@click.option("--client-question", type=_ON_OFF, help="The client's own question before calls of Handrail's tools.")
@click.option("--client-tools", type=_ON_OFF, help="The client's own tools that run commands and change files.")
@click.option(
    "--file",
    "path",
    metavar="FILE",
    shell_complete=complete_paths.files,
    help="The configuration file; default: the client's own.",
)
@click.option("--write", is_flag=True, help="Write the settings into the client's files; ask what is not given.")
@click.option("--check", is_flag=True, help="Start the server as the client's file says, and list its tools.")
@click.option("--unattended", is_flag=True, help="Write settings that weaken approval without a user at a terminal.")
def command(client: str, **given: Any) -> None:
    """Print the settings for CLIENT; with --write, add them to the client's configuration files."""
    kind = CLIENTS[client]
    place = _place(kind, client, given)
    if given["check"] and not given["write"]:
        _check(kind, place)
        return
    here = given["write"] and user_is_here()
    chosen = _choices(kind, given, ask=here)
    plan = make_plan(kind, place, chosen)
    if not given["write"]:
        for file in plan.files:
            click.echo(f"# {kind.title}: {file.path}", err=True)
            click.echo(snippet(file), nl=False)
        _say_rest(kind, chosen, plan)
        return
    if chosen.approve in ("auto", "host", "edit") or chosen.quiet:
        refuse_unattended(f"config --write of this setting for {client}", unattended=given["unattended"])
    _write_all(place, plan)
    _say_rest(kind, chosen, plan)
    if place.scope == "project" and on_path(NAME) is None:
        click.echo(f"handrail is not on your PATH, so {kind.title} cannot start it: install it, or use --scope user")
    click.echo(f"Restart {kind.title} to see the tools; handrail config {client} --check lists them here")
    if kind.at_start:
        click.echo(f"If {kind.title} asks at its next start: {kind.at_start}")
    if given["check"]:
        _check(kind, place)


def _place(kind: ClientKind, client: str, given: dict[str, Any]) -> ConfigPlace:
    scope = given["scope"] or (kind.first if getattr(kind, kind.first) else "user")
    if not getattr(kind, scope):
        raise click.UsageError(f"{client} has no configuration of a {scope}; use --scope user")
    pinned = given["root"] is not None
    needed = kind.starts_anywhere or scope == "project"
    root = absolute(given["root"] or (found_workspace() if needed else "."))
    if not given["path"]:
        return ConfigPlace(root, scope, pinned)
    file = absolute(given["path"])
    return ConfigPlace(root, "project" if is_inside_text(file, root) else "user", pinned, file)


def _choices(kind: ClientKind, given: dict[str, Any], *, ask: bool) -> Choices:
    approve, question, tools = given["approve"], given["client_question"], given["client_tools"]
    if ask and approve is None:
        approve = _ask_who(kind)
    approve = None if approve == _HANDRAIL else approve
    by_client = approve in ("auto", "host")
    if by_client and question == "off":
        raise click.UsageError(f"--approve {approve} and --client-question off exclude each other: no one would ask")
    if ask and question is None and not by_client and not kind.quiet.by_hand:
        question = _ask_off(f"Switch off {kind.title}'s own question for Handrail's tools, so that only Handrail asks?")
    if ask and tools is None and kind.own_tools and not kind.own_off.by_hand:
        tools = _ask_off(f"Switch off {kind.title}'s own shell and edit tools, so that Handrail sees every change?")
    return Choices(given["dialect"], approve, bool(given["read_only"]), question == "off", tools == "off")


def _ask_who(kind: ClientKind) -> str:
    """Ask the user who approves."""
    if kind.asks:
        click.echo(f"Handrail asks in {kind.title} before each change; with host, {kind.title} asks instead", err=True)
    else:
        ways = "with host, it asks itself; with handrail, only your rules allow a change"
        click.echo(f"{_cannot_show(kind)}: {ways}", err=True)
    first = _HANDRAIL if kind.asks else "host"
    answer = click.prompt("Who approves changes?", type=click.Choice([_HANDRAIL, "host"]), default=first, err=True)
    return str(answer)


def _ask_off(question: str) -> str:
    return "off" if click.confirm(question, default=True, err=True) else "on"


def _cannot_show(kind: ClientKind) -> str:
    return f"{kind.title} cannot show Handrail's questions"


def _say_rest(kind: ClientKind, chosen: Choices, plan: ConfigPlan) -> None:
    """Say what the written settings leave to the user."""
    if not kind.asks and chosen.approve is None:
        way = "--approve host lets the client ask, approval rules allow single calls"
        click.echo(f"{_cannot_show(kind)}, so Handrail denies every change: {way}", err=True)
    if not chosen.own_off and kind.own_tools:
        note = kind.own_off.by_hand or "--client-tools off switches them off"
        click.echo(f"{kind.title}'s own shell and edit tools stay on beside Handrail's: {note}", err=True)
    for each in plan.by_hand:
        click.echo(f"By hand: {each}", err=True)


def _write_all(place: ConfigPlace, plan: ConfigPlan) -> None:
    """Write all files of a plan. Read and merge them all first, so that a file that cannot be merged stops early."""
    ready: list[tuple[FilePlan, _File, str, str]] = []
    for each in plan.files:
        file = _opened(place, each.path)
        old = _read(each.path, file)
        try:
            ready.append((each, file, old, merged(each, old)))
        except Unmergeable as error:
            raise click.ClickException(f"{each.path} was not changed: {error}:\n{snippet(each)}") from None
    for each, file, old, new in ready:
        if new == old:
            click.echo(f"{each.path} already has this")
            continue
        backup = _write(each.path, file, new)
        _report(each, old)
        if backup:
            click.echo(f"A backup of the file is in {backup}")


def _report(plan: FilePlan, old: str) -> None:
    """Say what was written into a file; show an entry that was replaced."""
    first = plan.settings[0]
    before = value_at(plan.form, old, first.path) if first.path[-1] == NAME else None
    names = ", ".join(dict.fromkeys(".".join(each.path[:2]) for each in plan.settings))
    click.echo(f"{'Added to' if before is None else 'Replaced in'} {plan.path}: {names}")
    if before is not None:
        click.echo(f"  before: {one_line(json.dumps(before, ensure_ascii=False), 2000)}")
        click.echo(f"  now: {one_line(json.dumps(first.value, ensure_ascii=False), 2000)}")


def _check(kind: ClientKind, place: ConfigPlace) -> None:
    path = server_file(kind, place)
    form = make_plan(kind, place, Choices()).files[0].form
    try:
        entry = value_at(form, _read(path, _opened(place, path)), (kind.key, NAME))
        tools = list_tools(kind, place, entry)
    except (NotChecked, ValueError) as error:
        raise click.ClickException(one_line(f"{path}: {error}", 2000)) from None
    click.echo(f"{path} starts a server with {len(tools)} tools: {', '.join(tools)}")


def _opened(place: ConfigPlace, path: str) -> _File:
    inside = place.scope == "project" and is_inside_text(path, place.root)
    return ProjectFile(place.root, path, Limits()) if inside else UserFile(path, Limits())


def _read(path: str, file: _File) -> str:
    try:
        return file.read()
    except UnicodeDecodeError:
        raise click.ClickException(f"{path} was not changed: it is not text") from None
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror}") from None
    except Fault as fault:
        raise click.ClickException(f"cannot read {path}: {_message(fault)}") from None


def _write(path: str, file: _File, text: str) -> str | None:
    """Replace the contents of the file and return the path of its backup, if there is one."""
    try:
        return file.replace(text)
    except OSError as error:
        raise click.ClickException(f"{path} was not changed: {error}") from None
    except Fault as fault:
        raise click.ClickException(f"{path} was not changed: {_message(fault)}") from None


def _message(fault: Fault) -> str:
    return render((COMMON,), "", fault, {}).message
