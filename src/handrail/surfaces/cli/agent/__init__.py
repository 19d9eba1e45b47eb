"""Implements `handrail agent TASK`: runs a model with the tools of a workspace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from handrail.dialects import NAMES
from handrail.errors import HandrailError
from handrail.settings import APPROVE
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.light.page_address import print_page_address
from handrail.surfaces.cli.options import (
    image_options,
    layered_option,
    log_option,
    network_option,
    page_option,
    preset_option,
    read_only_option,
    root_option,
    sandbox_option,
)
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver

_INSTALL = "the agent needs more packages: pip install 'handrail[agent]'"
_file = click.Path(dir_okay=False)


def budget_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that bound what a model may use, and name its server, to a command."""
    for option in (
        click.option("--money", type=click.FloatRange(0, min_open=True), help="The most money, in US dollars."),
        click.option("--tokens", type=click.IntRange(1), help="The most tokens, in and out."),
        click.option("--seconds", type=click.FloatRange(0, min_open=True), help="The most time."),
        click.option(
            "--steps", type=click.IntRange(1), default=100, show_default=True, help="The most answers of the model."
        ),
        click.option("--base-url", metavar="URL", help="A compatible server of the provider's API."),
    ):
        function = option(function)
    return function


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a model and its budget to a command."""
    name = click.option("--model", metavar="PROVIDER:NAME", help="The model, or scripted:FILE for answers from a file.")
    return name(budget_options(function))


@contextmanager
def needs_extra() -> Iterator[None]:
    """Report packages of the extra that are not installed as a usage error."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("handrail"):
            raise
        raise click.UsageError(_INSTALL) from None


@click.command("agent")
@click.argument("task", required=False)
@model_options
@click.option("--dialect", type=click.Choice(NAMES), help="The tools; default: those that the model knows.")
@click.option(
    "--context-tokens", type=click.IntRange(1000), help="The size of the model's context, if Handrail does not know it."
)
@click.option("--trajectory", type=_file, shell_complete=complete_paths.files, help="The file for the steps (ATIF).")
@click.option("--resume", type=_file, shell_complete=complete_paths.files, help="Continue the run of a trajectory.")
@click.option("--replay", type=_file, shell_complete=complete_paths.files, help="Repeat the calls of a trajectory.")
@preset_option
@layered_option
@click.option("--approve", type=click.Choice(APPROVE), help="Who approves calls that write, run or fetch.")
@root_option
@image_options
@read_only_option
@sandbox_option
@network_option
@log_option
@page_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON event per line.")
def command(task: str | None, **options: Any) -> None:
    """Work on TASK with a model until the task is done or a budget is spent.

    Prints the text of the model to standard error at once, and the final answer to standard output. Rules, or the
    user at the terminal, approve calls.
    """
    chosen = [name for name in ("resume", "replay") if options[name]]
    if (task is None) != bool(chosen) or len(chosen) > 1:
        raise click.UsageError("give one of TASK, --resume FILE and --replay FILE")
    if options["model"] is None and not options["replay"]:
        raise click.UsageError("name a model with --model PROVIDER:NAME")
    with needs_extra():
        from handrail.surfaces.cli.agent.run_agent import RunOptions, run  # noqa: PLC0415  needs the packages of the extra
    run_options = RunOptions(*(options.pop(name) for name in RunOptions._fields))
    root, page, hints = options.pop("root"), options.pop("page"), AllowHints()
    with open_workspace(root, approver=terminal_approver(), tell=hints.append, **options) as workspace:
        if page:
            print_page_address([workspace])
        try:
            outcome = run(workspace, task, run_options)
        except HandrailError as error:
            raise click.UsageError(str(error)) from None
        hints.show()
    raise SystemExit(outcome.exit_code)
