"""Declares the tools that run commands and stop tasks.

Every command runs in a new bash. The directory in which it ends is where the next one begins, so bash reports it at the
end of the output, behind a mark that is new for each call. A forged report does no harm: the next command could change
the directory itself.
"""

import math
import secrets
import signal
from typing import TYPE_CHECKING

from handrail.dialects.claude_code.dialect import dialect
from handrail.model.effects import Effect
from handrail.model.faults import BadParameters, CommandFailed, PathFault, Problem
from handrail.model.job_faults import SandboxDemanded
from handrail.model.paths import quote
from handrail.ops.text.display import cut_middle, without_escapes
from handrail.runtime.call import Call
from handrail.tools.command_output import output_text
from handrail.tools.schema import Params, field

if TYPE_CHECKING:
    from handrail.runtime.job_commands import JobOptions, JobRead

_MOST_FOREGROUND, _MOST_BACKGROUND = 600_000, 7_200_000
_SHELL = (  # one line, so that bash counts the lines of the command from 1
    '__text=$1; set --; trap \'test ${{SECONDS:-0}} -lt {seconds} && printf "{mark}%s\\n" "$(pwd -P)"\' EXIT; '
    'eval "$__text"'
)


class CodeBash(Params):
    command: str = field("The command to execute.")
    timeout: int | None = field(
        "Timeout in milliseconds (at most 600000, or 7200000 in the background).",
        default=None,
        ge=1,
        le=_MOST_BACKGROUND,
    )
    description: str | None = field("What the command does, in a few words.", default=None, any_text=True)
    run_in_background: bool = field("Run the command in the background, and return at once.", default=False)
    dangerouslyDisableSandbox: bool = field(  # noqa: N815  its name in the reference
        "Not available: only the user can change the sandbox, in the settings.", default=False
    )


@dialect.tool("Bash", Effect.RUN)
def bash(p: CodeBash, c: Call) -> str:
    """Run a command in a new bash. The directory carries over to the next command, variables do not."""
    if p.dangerouslyDisableSandbox and c.session.services.powers.sandbox != "off":
        raise SandboxDemanded
    if not p.run_in_background and (p.timeout or 0) > _MOST_FOREGROUND:
        raise BadParameters([Problem("timeout", "maximum", str(_MOST_FOREGROUND), str(p.timeout))])
    seconds = (p.timeout / 1000) if p.timeout else c.limits.command_seconds
    mark = f"\n<handrail-directory-{secrets.token_hex(8)}>"
    ran = _started(p, c, 0.0 if p.run_in_background else seconds, mark)
    stdout, stderr = (without_escapes(output_text(name, getattr(ran.reading, name))) for name in ("stdout", "stderr"))
    stdout, note = _carry_over(c, stdout, mark)
    stderr = f"{stderr.rstrip()}\n{note}".strip("\n") if note else stderr
    c.metadata.update(stdout=cut_middle(stdout, _room(c)), stderr=cut_middle(stderr, _room(c)), interrupted=False)
    return _report(p, c, ran, stdout, stderr)


def _room(c: Call) -> int:
    return c.limits.claude_code_output_chars


def _started(p: CodeBash, c: Call, wait: float, mark: str) -> "JobRead":
    try:
        return c.jobs.start(
            p.command, wait_seconds=wait, directory=c.session.directory, options=_options(p, c, wait, mark)
        )
    except PathFault:
        if c.session.directory == ".":
            raise
    c.session.directory = "."  # the directory is gone: begin again in the root
    return c.jobs.start(p.command, wait_seconds=wait, options=_options(p, c, wait, mark))


def _options(p: CodeBash, c: Call, wait: float, mark: str) -> "JobOptions":
    from handrail.runtime.job_commands import JobOptions  # noqa: PLC0415  the same

    seconds = c.limits.claude_code_background_seconds
    if p.run_in_background:
        return JobOptions(p.timeout / 1000 if p.timeout else seconds, merged=True, to_file=True)
    shell = (c.session.shell, "-c", _SHELL.format(seconds=math.ceil(wait), mark=mark.replace("\n", "\\n")), "bash")
    return JobOptions(max(wait, seconds), shell, merged=False, to_file=True, brief=True)


def _carry_over(c: Call, stdout: str, mark: str) -> tuple[str, str]:
    """Take the directory at the end of the output; return the output without it, and what to say about it."""
    output, found, rest = stdout.rpartition(mark)
    if not found:
        return stdout, ""
    directory, _, later = rest.partition("\n")
    inside = directory == c.root or directory.startswith(c.stem)
    c.session.directory = quote(directory[len(c.stem) :]) or "." if inside else "."
    return output + later, "" if inside else f"Shell cwd was reset to {c.root}"


def _report(p: CodeBash, c: Call, ran: "JobRead", stdout: str, stderr: str) -> str:
    """Return the output that the model sees; if the command still runs, say where the rest will be."""
    whole = "\n".join(part.rstrip("\n") for part in (stdout, stderr) if part.strip("\n"))
    text, reading = cut_middle(whole, _room(c)), ran.reading
    if text != whole:
        longest = max(reading.stdout, reading.stderr, key=lambda output: output.total_bytes)
        c.commands.note_cut(longest, max(0, longest.total_bytes - longest.cut_bytes - len(whole) + len(text)))
    if ran.running:
        c.metadata["backgroundTaskId"] = ran.job
        where = f"with ID: {ran.job}. Output is being written to: {ran.output_file}"
        if p.run_in_background:
            return f"Command running in background {where}"
        limit = p.timeout or round(c.limits.command_seconds * 1000)
        c.metadata["timedOutAfterMs"] = limit
        said = f"Command did not end within {limit} ms and goes on in the background {where}"
        return f"{text}\n\n{said}" if text else said
    if reading.exit_code != 0:
        code = 128 + signal.Signals[reading.signal] if reading.signal else reading.exit_code or 0  # as shells do
        raise CommandFailed(p.command, code, f"\n{text}" if text else "", "")
    c.metadata["noOutputExpected"] = not text
    return text or "(The command printed nothing.)"


class TaskStop(Params):
    task_id: str | None = field("The ID of the background task to stop.", default=None)
    shell_id: str | None = field("Deprecated: use task_id instead.", default=None)


@dialect.tool("TaskStop", Effect.RUN)
def task_stop(p: TaskStop, c: Call) -> str:
    """Stop a task that runs in the background, with everything that it started."""
    task = p.task_id or p.shell_id
    if not task:
        raise BadParameters([Problem("", "missing", "task_id")])
    text = next((job.text for job in c.jobs.list() if str(job.number) == task), "")
    c.jobs.stop(task)
    said = f"Successfully stopped task: {task} ({text})"
    c.metadata.update(message=said, task_id=task, task_type="local_bash", command=text)
    return said
