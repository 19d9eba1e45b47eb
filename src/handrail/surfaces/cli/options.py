"""Defines options that several commands share, and opens workspaces for them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.dialects.by_model import choose_dialect
from handrail.errors import did_you_mean
from handrail.library.load_settings import users_models
from handrail.settings import APPROVE, PRESETS, SANDBOX
from handrail.surfaces.cli import complete_paths, light_options
from handrail.surfaces.cli.light.open_workspace import usage_errors

AUTO = "auto"
_Function = Callable[..., Any]


class NearChoice(click.Choice[str]):
    """Names the nearest choice in the error about a wrong one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        message = super().get_invalid_choice_message(value, ctx).rstrip(".")
        return f"{message}{did_you_mean(str(value), self.choices)}"


root_option, json_option = light_options.root_option, light_options.json_option
read_only_option = click.option("--read-only", is_flag=True, default=None, help="Offer only tools that read.")
preset_option = click.option(
    "--preset",
    type=click.Choice([*PRESETS]),
    help="read-only: change nothing; edit: ask only about commands and fetches; trusted: ask only about guarded paths.",
)
log_option = click.option(
    "--log", metavar="FILE", shell_complete=complete_paths.files, help="The file for the session log."
)
layered_option = click.option(
    "--layered", is_flag=True, default=None, help="Leave the workspace as it is; keep all changes in a layer over it."
)
page_option = click.option(
    "--page", is_flag=True, help="Serve the local page that shows the calls, and print its address on standard error."
)
sandbox_option = click.option("--sandbox", type=click.Choice(SANDBOX), help="The sandbox level of commands.")
network_option = click.option(
    "--network",
    metavar="HOST",
    multiple=True,
    callback=lambda _context, _option, hosts: hosts or None,
    help="A host that commands may reach, and no other; can be given more than once.",
)


def image_options(function: _Function) -> _Function:
    """Add `--image` and `--workdir`, which choose a container image instead of a directory, to a command."""
    named = "Work in a container image, whose changes are forgotten at the end: oci:PATH[:TAG] or docker-archive:PATH."
    image = click.option("--image", metavar="IMAGE", is_eager=True, help=named)
    workdir = click.option("--workdir", metavar="DIR", help="The directory of the image that tools see.")
    return image(workdir(function))


def dialect_options(function: _Function) -> _Function:
    """Add `--dialect` and `--model` to a command, which receives the chosen dialect, or None, as `dialect`."""

    @click.option("--dialect", type=NearChoice([AUTO, *NAMES]), help="The tool dialect; auto follows --model.")
    @click.option("--model", metavar="NAME", help="Use the dialect that this model was trained on.")
    @wraps(function)
    def choose(*args: Any, dialect: str | None, model: str | None, **options: Any) -> Any:
        return function(*args, dialect=_chosen(dialect, model), **options)

    return choose


def _chosen(dialect: str | None, model: str | None) -> str | None:
    if dialect == AUTO and model is None:
        raise click.UsageError("--dialect auto needs --model NAME")
    if model is None or dialect not in (None, AUTO):
        return dialect
    with usage_errors("."):
        choice = choose_dialect(model, users_models())
        load(choice.dialect)  # raises if the setting names an unknown dialect
    if choice.note:
        click.echo(f"handrail: {choice.note}", err=True)
    return choice.dialect


def workspace_options(function: _Function) -> _Function:
    """Add the options that open a workspace to a command."""
    for option in (
        log_option,
        network_option,
        sandbox_option,
        read_only_option,
        preset_option,
        click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch."),
        root_option,
        image_options,
        layered_option,
        dialect_options,
    ):
        function = option(function)
    return function
