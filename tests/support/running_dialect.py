"""Declares a dialect for tests of the shell that remembers and of jobs, without the words of a real dialect."""

from collections.abc import Callable
from typing import Any

from handrail import Question, ToolRouter, Verdict, Workspace
from handrail.model.effects import Effect
from handrail.runtime.call import Call
from handrail.runtime.job_commands import JobOptions, JobRead
from handrail.tools.command_output import output_text
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

running = Dialect("running")


class Shell(Params):
    command: str = field("The command.")
    seconds: float = field("The time limit.", default=300.0)


@running.tool("shell", Effect.RUN)
def shell(p: Shell, c: Call) -> dict[str, Any]:
    """Runs a command in the shell that remembers."""
    ran = c.commands.run_in_shell("main", p.command, seconds=p.seconds, merged=True)
    ended = ran.shell_ended.why if ran.shell_ended else ""
    return {"output": output_text("stdout", ran.outcome.stdout), "code": ran.status, "ended": ended}


class Nothing(Params):
    pass


@running.tool("restart", Effect.RUN)
def restart(p: Nothing, c: Call) -> str:
    """Restarts the shell."""
    c.commands.restart_shell("main")
    return "restarted"


class Start(Params):
    command: str = field("The command.")
    wait: float = field("How long to wait.", default=0.0)
    seconds: float | None = field("The time limit.", default=None)
    terminal: bool = field("With a terminal.", default=False)
    to_file: bool = field("With a file.", default=False)


@running.tool("start", Effect.RUN)
def start(p: Start, c: Call) -> dict[str, Any]:
    """Starts a job."""
    options = JobOptions(seconds=p.seconds, terminal=p.terminal, to_file=p.to_file)
    return _shown(c.jobs.start(p.command, wait_seconds=p.wait, options=options, justification="to see what happens"))


class Read(Params):
    job: str = field("The job.")
    wait: float = field("How long to wait.", default=0.0)


@running.tool("read", Effect.RUN)
def read(p: Read, c: Call) -> dict[str, Any]:
    """Reads a job."""
    return _shown(c.jobs.read(p.job, p.wait))


class Type(Params):
    job: str = field("The job.")
    chars: str = field("What to type.", any_text=True)
    wait: float = field("How long to wait.", default=0.0)


@running.tool("type", Effect.RUN)
def type_into(p: Type, c: Call) -> dict[str, Any]:
    """Types into a job."""
    return _shown(c.jobs.type(p.job, p.chars, p.wait))


@running.tool("stop", Effect.RUN)
def stop(p: Read, c: Call) -> dict[str, Any]:
    """Stops a job."""
    return _shown(c.jobs.stop(p.job))


def _shown(read: JobRead) -> dict[str, Any]:
    output = output_text("stdout", read.reading.stdout)
    code = read.reading.exit_code
    return {"job": read.job, "output": output, "running": read.running, "code": code, "file": read.output_file}


def router_of(workspace: Workspace, approver: Callable[[Question], Verdict] | None = None) -> ToolRouter:
    client = workspace.session(approver=approver)
    return ToolRouter(running, client._session, client.log)
