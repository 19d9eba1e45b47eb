"""Implements `handrail jobs`: lists the jobs of the live sessions of a workspace."""

import time
from collections.abc import Iterator

import click

from handrail.kernel.host.state_dir import State, existing_directory
from handrail.kernel.process.job_records import RecordedJob, live_jobs
from handrail.ops.text.display import age, one_line
from handrail.surfaces.cli.light.find_workspace import root_errors
from handrail.surfaces.cli.light_options import echo_json, json_option, root_option


@click.command("jobs")
@root_option
@json_option
def command(root: str, as_json: bool) -> None:
    """List the jobs of live sessions: session, number, state, age and command."""
    with root_errors(root):
        state = State.of(existing_directory(root))
    if state.warning:
        click.echo(f"handrail: {state.warning}", err=True)
    try:
        jobs = live_jobs(state)
    except OSError as error:
        raise click.ClickException(f"cannot read the list of jobs: {error}") from None
    if as_json:
        echo_json({"jobs": [job._asdict() for job in jobs]})
        return
    for line in _lines(jobs, time.time()):
        click.echo(line)


def _lines(jobs: list[RecordedJob], now: float) -> Iterator[str]:
    if not jobs:
        yield "No live session has jobs."
    for job in jobs:
        about = one_line(job.command, 100)
        yield f"{one_line(job.session)}  {job.number}  {_state(job)}  {age(now - job.started_at)}  {about}"


def _state(job: RecordedJob) -> str:
    if job.running:
        return "running"
    if job.exit_code is not None:
        return f"exit {job.exit_code}"
    return one_line(job.signal) if job.signal else "ended"
