"""Implements `handrail hooks`: lists the hooks in force, and trusts the hooks of a project's file."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import click

from handrail.errors import SettingsError
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host import hook_trust
from handrail.kernel.host.terminal import size, user_is_here
from handrail.library.load_settings import project_text
from handrail.model.hooks import Hook
from handrail.model.limits import Limits
from handrail.ops.hook_table import read_hooks
from handrail.ops.text.display import one_line, wrapped
from handrail.ops.toml_read import parse_toml
from handrail.settings import PROJECT_FILE
from handrail.surfaces.cli.light.open_workspace import open_workspace, usage_errors
from handrail.surfaces.cli.options import json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.doctor_report import checked_hooks

_UNCUT = 10**9


@click.group("hooks", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List hooks, and trust those of a project. Without a command: list."""
    if context.invoked_subcommand is None:
        list_hooks.invoke(list_hooks.make_context("list", [], parent=context))


@command.command("list")
@root_option
@json_option
def list_hooks(root: str, as_json: bool) -> None:
    """List the hooks that run in a workspace, and those of its project that do not run."""
    with open_workspace(root) as workspace:
        listed = [_facts(hook, why) for hook, why in checked_hooks(workspace)]
    waiting = [] if any(each["source"] == PROJECT_FILE for each in listed) else _in_project(root)[1]
    untrusted = [_facts(hook, "the user has not trusted this content of the file") for hook in waiting]
    if as_json:
        echo_json([*listed, *untrusted], indent=2)
        return
    for line in _lines([*listed, *untrusted]):
        click.echo(line)


@command.command("trust")
@root_option
def trust(root: str) -> None:
    """Show the hooks of the project's file, and let them run as long as the file stays as it is."""
    text, hooks = _in_project(root)
    if not hooks:
        raise click.UsageError(f"{PROJECT_FILE} has no hooks")
    if not user_is_here():
        raise click.UsageError("hooks run with all rights of the user: trust them in a terminal")
    for line in _lines((_facts(hook, "") for hook in hooks), whole=True):
        click.echo(wrapped(line, size()[0]), err=True)
    asked = "These programs would run outside the sandbox, with all your rights. Trust them?"
    click.confirm(asked, abort=True, err=True)
    hook_trust.trust(root, text)
    click.echo(f"Trusted the hooks of {PROJECT_FILE} until the file changes")


@command.command("untrust")
@root_option
def untrust(root: str) -> None:
    """Let the hooks of the project's file run no more."""
    had = hook_trust.distrust(root)
    click.echo("The hooks of the project do not run any more" if had else "No hooks of the project were trusted")


def _in_project(root: str) -> tuple[str, tuple[Hook, ...]]:
    """Return the text of the project's file, and its hooks."""
    with usage_errors(root), closing(FsBoundary(root)) as boundary:
        text = project_text(boundary, Limits())
        try:
            found = parse_toml(text).get("hooks", {})
        except ValueError as error:
            raise SettingsError(f"{PROJECT_FILE}: not valid TOML: {error}") from None
        return text, read_hooks(found, f"{PROJECT_FILE}: ", PROJECT_FILE)


def _lines(hooks: Iterable[dict[str, Any]], *, whole: bool = False) -> Iterator[str]:
    """Yield the lines that describe hooks; with `whole` nothing is cut, since the user trusts what is shown."""
    shown = list(hooks)
    most, longest = (_UNCUT, _UNCUT) if whole else (200, 2000)
    if not shown:
        yield "No hooks. They are a part of config.toml: see docs/hooks.md"
    for each in shown:
        only = f" if the input matches {one_line(each['pattern'], most)}" if each["pattern"] else ""
        yield f"{each['event']} of {one_line(each['matcher'] or '*', most)}{only}, in {one_line(each['source'])}:"
        yield f"  {one_line(each['command'], longest)}"
        if each["refused"]:
            yield f"  does not run: {one_line(each['refused'])}"


def _facts(hook: Hook, refused: str) -> dict[str, Any]:
    return {**hook._asdict(), "refused": refused}
