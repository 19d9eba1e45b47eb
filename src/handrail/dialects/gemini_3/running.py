"""Declares the tool that runs commands."""

from typing import TYPE_CHECKING

from handrail.dialects.gemini_3.dialect import Gemini3Params, dialect
from handrail.model.effects import Effect
from handrail.model.faults import CommandTimedOut
from handrail.ops.text.display import without_escapes
from handrail.runtime.call import Call
from handrail.runtime.job_commands import JobOptions
from handrail.tools.command_output import output_text
from handrail.tools.schema import field

if TYPE_CHECKING:
    from handrail.runtime.job_commands import JobRead

_CANCELLED = "Command was automatically cancelled because it exceeded the timeout of {}."
_SILENT = " There was no output before it was cancelled."
_START_SECONDS = 0.2
"""The time for which a command in the background is watched for an immediate error, if the call does not say."""


class RunShellCommand3(Gemini3Params):
    command: str = field("Exact bash command to execute as `bash -c <command>`.")
    description: str | None = field("Brief description of the command for the user.", default=None)
    dir_path: str | None = field(
        "The directory to run the command in, inside the workspace; the root if not given.", default=None, path=True
    )
    is_background: bool = field("Set to true if this command should be run in the background.", default=False)
    delay_ms: int | None = field(
        "Milliseconds to wait for first output of a command in the background.", default=None, ge=0
    )


@dialect.tool("run_shell_command", Effect.RUN)
def run_shell_command(p: RunShellCommand3, c: Call) -> str:
    """Execute a shell command and return its output, standard output and standard error in one."""
    directory, limit = p.dir_path or ".", c.limits.command_seconds
    if p.is_background:
        wait = _START_SECONDS if p.delay_ms is None else min(p.delay_ms / 1000, limit)
        started = c.jobs.start(p.command, wait_seconds=wait, directory=directory)
        if started.running:
            return f"Command moved to background (job {started.job}). Output hidden."
        return _report(started)
    ran = c.jobs.start(p.command, wait_seconds=limit + 60, directory=directory, options=JobOptions(limit))
    if not ran.reading.timed_out:
        return _report(ran)
    output = _output(ran)
    shown = f" Below is the output before it was cancelled:\n{output}" if output else _SILENT
    raise CommandTimedOut(p.command, limit, f"{_CANCELLED.format(_duration(limit))}{shown}")


def _duration(seconds: float) -> str:
    return f"{seconds:g} seconds" if seconds % 60 else f"{seconds / 60:.1f} minutes"


def _output(ran: "JobRead") -> str:
    return without_escapes(output_text("output", ran.reading.stdout))


def _report(ran: "JobRead") -> str:
    reading = ran.reading
    lines = [f"Output: {_output(ran) or '(empty)'}"]
    lines += [f"Exit Code: {reading.exit_code}"] if reading.exit_code else []
    lines += [f"Signal: {reading.signal}"] if reading.signal else []
    lines += [f"Background PIDs: {', '.join(map(str, sorted(reading.background)))}"] if reading.background else []
    return "\n".join(lines)
