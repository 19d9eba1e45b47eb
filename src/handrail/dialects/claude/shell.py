"""Declares the shell tool: one bash that keeps directory, variables and functions from call to call."""

from handrail.dialects import claude_bash
from handrail.dialects.claude.dialect import dialect
from handrail.model.effects import Effect
from handrail.runtime.call import Call
from handrail.tools.schema import Params, field
from handrail.tools.tool import Builtin


class ClaudeShell(Params):
    command: str | None = field("The command to run; needed unless restart is true.", default=None)
    restart: bool = field("End the shell with everything that it started, and begin a new one.", default=False)


@dialect.tool(
    claude_bash.SHELL, Effect.RUN, builtin=Builtin("anthropic", {"type": "bash_20250124", "name": claude_bash.SHELL})
)
def bash(p: ClaudeShell, c: Call) -> str:
    """Run a command in a bash that keeps its state from call to call."""
    return claude_bash.answer(c, p.command, p.restart)
