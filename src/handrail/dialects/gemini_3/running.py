"""Declares the tool that runs commands."""

from typing import TYPE_CHECKING, ClassVar

from handrail.dialects.gemini_3.dialect import Gemini3Params, dialect
from handrail.kernel.process.runner import signal_number
from handrail.model.effects import Effect
from handrail.model.faults import CommandTimedOut
from handrail.model.rights import Rights
from handrail.ops.text.display import without_escapes
from handrail.runtime.call import Call
from handrail.runtime.job_commands import JobOptions
from handrail.runtime.more_rights import wanted_rights
from handrail.tools.command_output import output_text
from handrail.tools.schema import field

if TYPE_CHECKING:
    from handrail.runtime.job_commands import JobRead

_CANCELLED = "Command was automatically cancelled because it exceeded the timeout of {}."
_BEGIN, _END = "<untrusted_context>", "</untrusted_context>"
_SILENT = " There was no output before it was cancelled."
_START_SECONDS = 0.2
"""The time for which a command in the background is watched for an immediate error, if the call does not say."""


class FileRights3(Gemini3Params):
    unknown_allowed: ClassVar[bool] = False
    read: list[str] | None = field("List of additional absolute paths to allow reading.", default=None)
    write: list[str] | None = field("List of additional absolute paths to allow writing.", default=None)


class AskedRights3(Gemini3Params):
    unknown_allowed: ClassVar[bool] = False
    network: bool | None = field("Set to true to enable network access for this command.", default=None)
    fileSystem: FileRights3 | None = field("Additional paths.", default=None)  # noqa: N815  its name in the reference


class RunShellCommand3(Gemini3Params):
    command: str = field("Exact bash command to execute as `bash -c <command>`")
    description: str | None = field(
        "Brief description of the command for the user. Be specific and concise. Ideally a single sentence. Can "
        "be up to 3 sentences for clarity. No line breaks.",
        default=None,
    )
    dir_path: str | None = field(
        "(OPTIONAL) The path of the directory to run the command in. If not provided, the project root directory "
        "is used. Must be a directory within the workspace and must already exist.",
        default=None,
        path=True,
    )
    is_background: bool = field(
        "Set to true if this command should be run in the background (e.g. for long-running servers or watchers). The "
        "command will be started, allowed to run for a brief moment to check for immediate errors, and then moved "
        "to the background.",
        default=False,
    )
    delay_ms: int | None = field(
        "Optional. Delay in milliseconds to wait after starting the process in the background. Useful to allow "
        "the process to start and generate initial output before returning.",
        default=None,
        ge=0,
    )
    additional_permissions: AskedRights3 | None = field(
        "Sandbox permissions for the command. Use this to request additional sandboxed filesystem or network "
        "permissions if a previous command was refused them.",
        default=None,
    )


@dialect.tool("run_shell_command", Effect.RUN)
def run_shell_command(p: RunShellCommand3, c: Call) -> str:
    """Execute a shell command and return its output, standard output and standard error in one."""
    directory, limit = p.dir_path or ".", c.limits.command_seconds
    rights, why = _rights(p, c), p.description or ""
    if p.is_background:
        wait = _START_SECONDS if p.delay_ms is None else min(p.delay_ms / 1000, limit)
        started = c.jobs.start(
            p.command,
            wait_seconds=wait,
            directory=directory,
            options=JobOptions(bounded=True),
            rights=rights,
            justification=why if rights else "",
        )
        if started.running:
            return f"Command is running in background. Job: {started.job}. Initial output:\n{_output(started)}"
        return _report(started)
    ran = c.jobs.start(
        p.command,
        wait_seconds=limit + 60,
        directory=directory,
        options=JobOptions(limit, bounded=True),
        rights=rights,
        justification=why if rights else "",
    )
    if not ran.reading.timed_out:
        return _report(ran)
    output = _output(ran)
    shown = f" Below is the output before it was cancelled:\n{output}" if output else _SILENT
    raise CommandTimedOut(p.command, limit, f"{_CANCELLED.format(_duration(limit))}{shown}")


def _rights(p: RunShellCommand3, c: Call) -> Rights:
    asked = p.additional_permissions
    if asked is None:
        return Rights()
    files = asked.fileSystem or FileRights3(read=None, write=None)
    return wanted_rights(c, network=bool(asked.network), read=files.read or (), write=files.write or ())


def _duration(seconds: float) -> str:
    return f"{seconds:g} seconds" if seconds % 60 else f"{seconds / 60:.1f} minutes"


def _output(ran: "JobRead") -> str:
    return without_escapes(output_text("output", ran.reading.stdout)).strip()


def _report(ran: "JobRead") -> str:
    reading = ran.reading
    lines = [f"Output: {_output(ran) or '(empty)'}"]
    lines += [f"Exit Code: {reading.exit_code}"] if reading.exit_code else []
    lines += [f"Signal: {signal_number(reading.signal)}"] if reading.signal else []
    lines += [f"Background PIDs: {', '.join(map(str, sorted(reading.background)))}"] if reading.background else []
    return _wrapped("\n".join(lines))


def _wrapped(text: str) -> str:
    """Mark a text as data of a command. The text cannot end the mark itself."""
    return f"{_BEGIN}\n{text.replace(_END, '&lt;/untrusted_context&gt;')}\n{_END}"
