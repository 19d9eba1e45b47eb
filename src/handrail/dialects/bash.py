"""Declares the `bash` dialect: one tool for agents that work with commands alone, as in mini-swe-agent."""

from typing import TYPE_CHECKING

from handrail.dialects.output_types import BashObservation
from handrail.model.effects import Effect
from handrail.model.faults import PatchTyped
from handrail.runtime.call import Call
from handrail.tools.messages import Message
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect

if TYPE_CHECKING:
    from handrail.kernel.process.bounded_output import Output

dialect = Dialect(
    "bash",
    {
        PatchTyped: Message(
            "not_a_program",
            "apply_patch is not a program here; nothing was run",
            "Write the change with a command, for example with sed, or with cat and a here-document",
        )
    },
)
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""A command that prints this as its first line ends the task; the rest of its output is the result."""
_SHOWN = 5000
"""The number of characters that an answer shows of each end of a long output."""


class Bash(Params):
    command: str = field("The bash command to execute")


@dialect.tool("bash", Effect.RUN)
def bash(p: Bash, c: Call) -> BashObservation:
    """Execute a bash command. Each command runs in a new shell in the workspace root."""
    ran = c.commands.run(p.command, merged=True, bounded=False)
    output, outcome = ran.outcome.stdout, ran.outcome
    head = output.head.decode(errors="replace")
    first, _, rest = head.lstrip().partition("\n")
    if ran.status == 0 and first.strip() == SUBMIT and not output.cut_bytes:
        c.metadata.update(submitted=True, submission=rest)
    observation: BashObservation = {"returncode": -1 if ran.status is None else ran.status}
    if outcome.timed_out:
        observation["warning"] = f"The command took longer than {c.limits.command_seconds:g} seconds and was ended."
    return observation | _shown(c, output, head)


def _shown(c: Call, output: "Output", head: str) -> BashObservation:
    """Return the whole output, or its two ends if it is long."""
    whole = head + output.tail.decode(errors="replace")
    if len(whole) <= 2 * _SHOWN and not output.cut_bytes:
        return {"output": whole}  # type: ignore[typeddict-item]  # joined with the rest by the caller
    first, last = whole[:_SHOWN], whole[-_SHOWN:]
    c.commands.note_cut(output, len(first.encode()) + len(last.encode()))
    elided = len(whole) - 2 * _SHOWN + output.cut_bytes
    ends = {"output_head": first, "output_tail": last, "elided_chars": elided}
    return {**ends, "warning": "Output too long."}  # type: ignore[typeddict-item]
