"""Implements `handrail fleet`: runs many tasks in many workspaces; shows, resumes and sums up a run."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from handrail.dialects import NAMES
from handrail.errors import HandrailError
from handrail.model import fleet_limits
from handrail.ops.text.display import one_line
from handrail.settings import SANDBOX
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.agent import budget_options, needs_extra
from handrail.surfaces.cli.light_options import json_option
from handrail.surfaces.cli.render import echo_json

ENGINES = ("local", "ray")
_ERASE = "\r\x1b[K"
_BUDGET = ("steps", "seconds", "tokens", "money")
_ENGINE_OPTIONS = ("address", "shared", "directory", "allow_open_cluster", "allow_exposed_cluster")
_LOG_CHARS = 160
_NODE_PLACE = click.Path(file_okay=False, resolve_path=True)  # `resume` may run in another directory
_directory = click.argument("results", type=click.Path(file_okay=False), shell_complete=complete_paths.directories)


@click.group("fleet")
def command() -> None:
    """Run many tasks, each in a workspace of its own."""


@contextmanager
def _told() -> Iterator[None]:
    """Report errors of a fleet as usage errors."""
    try:
        with needs_extra():
            yield
    except HandrailError as error:
        raise click.UsageError(str(error)) from None


def _search_here() -> None:
    """Let Python import episodes from the current directory, as the user who names one there expects."""
    from handrail.kernel.fleet.run_files import current_directory  # noqa: PLC0415  loaded on first use

    sys.path.insert(0, current_directory())


@command.command("run")
@click.argument("tasks", type=click.Path(dir_okay=False), shell_complete=complete_paths.files)
@click.option("--out", required=True, type=click.Path(file_okay=False), help="The directory for results and logs.")
@click.option(
    "--agent",
    metavar="PACKAGE:FUNCTION",
    help="The episode that does each task. Without it, the agent does them with --model.",
)
@click.option("--model", "models", metavar="PROVIDER:NAME", multiple=True, help="A model; can be given more than once.")
@click.option(
    "--dialect", "dialects", type=click.Choice(NAMES), multiple=True, help="A dialect to try; can be repeated."
)
@budget_options
@click.option("--tries", type=click.IntRange(1), default=1, show_default=True, help="How many times each task is done.")
@click.option(
    "--retries", type=click.IntRange(0), default=0, show_default=True, help="How many times a failed try is repeated."
)
@click.option("--tree", type=click.Path(file_okay=False), help="The tree of tasks that name none.")
@click.option("--check", metavar="COMMAND", help="A command: a task has passed if it ends with 0.")
@click.option("--on", "engine", type=click.Choice(ENGINES), default="local", show_default=True, help="Where hosts run.")
@click.option("--address", metavar="ADDRESS", help="The Ray cluster; default: that of this machine.")
@click.option("--shared", type=_NODE_PLACE, help="A directory that all nodes of Ray see; trees travel there.")
@click.option("--directory", type=_NODE_PLACE, help="Where hosts keep trees and workspaces on their nodes.")
@click.option("--allow-open-cluster", is_flag=True, default=None, help="Use a Ray cluster that asks for no token.")
@click.option("--allow-exposed-cluster", is_flag=True, default=None, help="Let commands reach the cluster's ports.")
@click.option("--hosts", type=click.IntRange(1), help="How many hosts; default: one for every two processors.")
@click.option(
    "--per-host",
    type=click.IntRange(1),
    default=fleet_limits.PER_HOST,
    show_default=True,
    help="The most workspaces of one host.",
)
@click.option(
    "--sandbox", type=click.Choice(SANDBOX), default="strict", show_default=True, help="The sandbox level of commands."
)
@click.option(
    "--checkpoint",
    "checkpoint_calls",
    type=click.IntRange(0),
    default=fleet_limits.CHECKPOINT_CALLS,
    show_default=True,
    help="Save a workspace after so many calls; 0 for never.",
)
def run(out: str, **options: Any) -> None:
    """Do all tasks of the file TASKS: each line is a JSON object with `id`, `tree`, and the input of the task."""
    from handrail.fleet.fleet_run import FleetOptions, FleetRun  # noqa: PLC0415  loaded on first use

    if bool(options["agent"]) == bool(options["models"]):
        raise click.UsageError("give one of --agent PACKAGE:FUNCTION and --model PROVIDER:NAME")
    engine_options = {name: each for name in _ENGINE_OPTIONS if (each := options.pop(name)) is not None}
    budget = {name: each for name in _BUDGET if (each := options.pop(name)) is not None}
    with _told():
        if options["agent"]:
            _search_here()
        _check_choice(options["agent"], options["models"], options["base_url"])
        chosen = FleetOptions(**{**options, "budget": budget, "engine_options": engine_options})
        _execute(FleetRun.new(out, chosen), out)


def _check_choice(agent: str | None, models: tuple[str, ...], base_url: str | None) -> None:
    """Raise the error that every task would end with: a wrong name, or a model without a key."""
    if agent:
        from handrail.fleet.episode import episode_name, import_episode  # noqa: PLC0415  loaded on first use

        import_episode(*episode_name(agent))
        return
    from handrail.chat.model_choice import model_of  # noqa: PLC0415  an extra

    for name in models:
        model_of(name, base_url)


@command.command("resume")
@_directory
def resume(results: str) -> None:
    """Resume a stopped run: do the tasks that have no result."""
    from handrail.fleet.fleet_run import FleetRun  # noqa: PLC0415  loaded on first use

    with _told():
        found = FleetRun(results)
        if found.options.agent:
            _search_here()
        _execute(found, results)


def _execute(found: Any, directory: str) -> None:
    """Work on a run with a progress line. Ends with 1 if a task failed."""
    terminal = sys.stderr.isatty()
    last = 0.0

    def show(status: dict[str, Any]) -> None:
        nonlocal last
        if terminal:
            click.echo(f"{_ERASE}{_line(status)}", nl=False, err=True)
        elif time.monotonic() - last > fleet_limits.QUIET_SECONDS:
            last = time.monotonic()
            click.echo(_line(status), err=True)

    try:
        status = found.execute(show)
    except KeyboardInterrupt:
        click.echo(f"\nhandrail: stopped; continue with handrail fleet resume {directory}", err=True)
        raise SystemExit(130) from None
    click.echo(f"{_ERASE if terminal else ''}{_line(status)}", err=True)
    if status["failed"]:
        raise SystemExit(1)


def _line(status: dict[str, Any]) -> str:
    """Return the progress as one line."""
    cost = f", ${status['cost']:.2f}" if status.get("cost") else ""
    deaths = f", {status['host_deaths']} hosts died" if status.get("host_deaths") else ""
    trouble = f"; {one_line(status['trouble'])}" if status.get("trouble") else ""
    copied = f"; workspaces are copies: {one_line(status['copied'])}" if status.get("copied") else ""
    return (
        f"{status['done']}/{status['tasks']} done, {status.get('running', 0)} running, {status['failed']} failed, "
        f"{status.get('retried', 0)} retried, {status.get('calls_per_second', 0.0):.0f} calls/s"
        f"{cost}{deaths}{trouble}{copied}"
    )


@command.command("status")
@_directory
@json_option
def status(results: str, as_json: bool) -> None:
    """Show how far a run is."""
    from handrail.fleet.fleet_run import FleetRun  # noqa: PLC0415  loaded on first use

    with _told():
        found = FleetRun(results)
        _ = found.options
        now = found.status()
    if as_json:
        echo_json(now)
        return
    click.echo(_line(now))
    if not now["alive"] and now["done"] < now["tasks"]:
        click.echo(f"no process works on this run; continue with handrail fleet resume {results}")


@command.command("logs")
@_directory
@click.argument("task")
@json_option
def logs(results: str, task: str, as_json: bool) -> None:
    """Show the calls of one task. `--json` prints them whole, one JSON object a line."""
    from handrail.fleet.fleet_run import FleetRun  # noqa: PLC0415  loaded on first use
    from handrail.kernel.fleet.run_files import read_lines  # noqa: PLC0415  loaded on first use

    with _told():
        found = FleetRun(results)
        _ = found.options
    if task not in {each["id"] for each in found.tasks()}:
        raise click.UsageError(f"the run has no task {task}")
    for line in read_lines(found.log_file(task)):
        if as_json:
            echo_json(line)
        else:
            click.echo(_shown(line))


def _shown(line: dict[str, Any]) -> str:
    moment = time.strftime("%H:%M:%S", time.localtime(line["time"]))
    if line["event"] == "call":
        answer = line["answer"]
        how = "ok" if answer["success"] else f"error: {answer['error']['code']}"
        return one_line(f"{moment} {line['tool']} {line['params']} → {how}", _LOG_CHARS)
    if line["event"] == "began":
        return one_line(f"{moment} began on {line['host']}, epoch {line['epoch']}", _LOG_CHARS)
    if line["event"] == "printed":
        return "\n".join(one_line(f"{moment} | {each}", _LOG_CHARS) for each in line["text"].split("\n"))
    return one_line(f"{moment} {line['event']} {line.get('reason') or line.get('state', '')}", _LOG_CHARS)


@command.command("report")
@_directory
@click.option("--html", "page_file", type=click.Path(dir_okay=False), help="Also write the report as an HTML page.")
def report(results: str, page_file: str | None) -> None:
    """Sum up the results by task, model and dialect."""
    from handrail.fleet.fleet_run import FleetRun  # noqa: PLC0415  loaded on first use
    from handrail.fleet.run_report import COLUMNS, RunReport, cells  # noqa: PLC0415  loaded on first use

    with _told():
        found = FleetRun(results)
        _ = found.options
        made = RunReport.of(found.results(), len(found.tasks()))
    rows = [["all", *cells(made.total)]]
    for name, shares in made.parts():
        rows += [[], [f"by {name}", *COLUMNS], *([each.name, *cells(each)] for each in shares)] if shares else []
    for line in _aligned([["", *COLUMNS], *rows]):
        click.echo(line)
    if page_file:
        from handrail.fleet.report_page import page  # noqa: PLC0415  loaded on first use
        from handrail.kernel.fleet.run_files import absolute, replace_text  # noqa: PLC0415  loaded on first use

        replace_text(absolute(page_file), page(made, f"Fleet run {one_line(results)}"))


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a table: texts left, numbers right."""
    shown = [[one_line(cell, 48) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in shown if row) for at in range(len(shown[0]))]
    for row in shown:
        padded = [
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        yield "  ".join(padded).rstrip()
