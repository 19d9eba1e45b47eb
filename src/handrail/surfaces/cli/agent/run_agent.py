"""Runs an agent for the command line: chooses the output, and lets Ctrl-C stop the run."""

import signal
import sys
import warnings
from typing import NamedTuple

import anyio
import click

from handrail.agent import Agent, Budget, Outcome
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory
from handrail.kernel.host.project_root import place_in
from handrail.kernel.host.terminal import give_up_questions
from handrail.surfaces.cli.agent.run_display import JsonLines, RunDisplay
from handrail.workspace import Workspace

_STOPPING = "handrail: stopping after this step; press Ctrl-C again to stop at once"


class RunOptions(NamedTuple):
    """Holds the options of `handrail agent` that do not open the workspace."""

    model: str | None
    base_url: str | None
    dialect: str | None
    steps: int
    seconds: float | None
    tokens: int | None
    money: float | None
    context_tokens: int | None
    trajectory: str | None
    resume: str | None
    replay: str | None
    as_json: bool


def run(workspace: Workspace, task: str | None, options: RunOptions) -> Outcome:
    """Run an agent as the options say, show it, and return how it ended. Raises HandrailError."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # the model library warns about odd answers; the user cannot change them
    display = JsonLines(sys.stdout) if options.as_json else RunDisplay(workspace, sys.stderr, sys.stdout)
    model, dialect = options.model, options.dialect
    repeated = Trajectory.load(options.replay) if options.replay else None
    if earlier := repeated or (options.resume and Trajectory.load(options.resume)):
        dialect = dialect or earlier.head["extra"].get("dialect")
    agent = Agent(
        workspace,
        ScriptedModel.of_answers(repeated.answers) if repeated else model or "",
        dialect=dialect,
        budget=Budget(options.steps, options.seconds, options.tokens, options.money),
        base_url=options.base_url,
        directory=place_in(workspace.root),
        trajectory=options.trajectory,
        context_tokens=options.context_tokens,
        on_event=display,
    )
    given = repeated.task if repeated else task or ""
    return anyio.run(_until_done, agent, given, options.resume)


async def _until_done(agent: Agent, task: str, resume: str | None) -> Outcome:
    ended: Outcome | Exception
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch_interrupts, agent)
        try:
            ended = await (agent.aresume(resume) if resume else agent.arun(task))
        except Exception as error:  # noqa: BLE001  a task group would wrap it
            ended = error
        tasks.cancel_scope.cancel()
    if isinstance(ended, Exception):
        raise ended
    return ended


async def _watch_interrupts(agent: Agent) -> None:
    """Stop the run after the current step at the first Ctrl-C, and at once at the second."""
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        await anext(signals)
        agent.stop()
        click.echo(_STOPPING, err=True)
        await anext(signals)
        agent.cancel()
        give_up_questions()
