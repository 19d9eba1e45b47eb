"""Answers the `bash` tools of `claude` and `claude-agent`: one shell that remembers, in the words of its reference."""

from typing import TYPE_CHECKING

from handrail.model.faults import Cancelled, CommandFailed, CommandTimedOut, EmptyCommand
from handrail.model.job_faults import ShellEnded
from handrail.ops.text.display import without_escapes
from handrail.runtime.call import Call
from handrail.tools.messages import Facts, Message, Words

if TYPE_CHECKING:
    from handrail.kernel.process.bounded_output import Output

SHELL = "bash"
_RESTART = "Call bash with restart set to true"


def _failed(facts: Facts) -> str:
    return facts["stdout"] or f"bash: exit code {facts['exit_code']}"


WORDS: Words = {
    (SHELL, EmptyCommand): Message("invalid_parameters", "bash: command is required", "Give a command, or restart"),
    (SHELL, CommandFailed): Message("command_failed", _failed, "Read the output and correct the command"),
    (SHELL, CommandTimedOut): Message("timeout", "bash: bash command timed out after {seconds}s", _RESTART),
    (SHELL, ShellEnded): Message("shell_ended", "bash: bash session terminated; restart required", _RESTART),
}


def answer(c: Call, command: str | None, restart: bool, seconds: float | None = None) -> str:
    """Run a command in the shell of the session and return its output, or restart the shell."""
    if restart:
        c.commands.restart_shell(SHELL)
        return "bash session restarted"
    if not command:
        raise EmptyCommand
    limit = float(seconds or c.limits.command_seconds)
    ran = c.commands.run_in_shell(SHELL, command, seconds=limit, merged=True)
    text = _tail(c, ran.outcome.stdout, c.limits.claude_bash_bytes)
    if ran.outcome.timed_out:
        raise CommandTimedOut(command, limit, text)
    if ran.outcome.cancelled:
        raise Cancelled
    c.metadata["exit_code"] = ran.returncode
    if ran.shell_ended and not text:
        raise ran.shell_ended
    if ran.shell_ended or ran.returncode:
        raise CommandFailed(command, ran.returncode, text, "")
    return text


def _tail(c: Call, output: "Output", most: int) -> str:
    """Return the end of the output as text, without terminal control sequences and final line ends."""
    kept = (output.tail if output.cut_bytes else output.head)[-most:]
    text = without_escapes(kept.decode(errors="replace")).rstrip("\n")
    if len(kept) == output.total_bytes:
        return text
    c.commands.note_cut(output, len(kept))
    return f"[output truncated]\n{text}"
