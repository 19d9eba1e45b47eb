"""Declares the `openai` dialect: the tools that OpenAI's Responses API has built in."""

from typing import Literal

from handrail.dialects.output_types import OperationResult, ShellCallOutput, ShellOutputs
from handrail.model.effects import Effect
from handrail.model.faults import BadParameters, NotFound, PatchTyped, Problem, StaleFile
from handrail.ops.patch import Action
from handrail.runtime.call import Call
from handrail.runtime.commands import Ran
from handrail.tools.command_output import output_text
from handrail.tools.common_messages import STALE_BY_COMMAND
from handrail.tools.messages import Message
from handrail.tools.schema import Params, field
from handrail.tools.tool import Builtin, Dialect

dialect = Dialect(
    "openai",
    {
        StaleFile: STALE_BY_COMMAND,
        ("apply_patch", NotFound): Message(
            "file_not_found",
            "'{path}' does not exist",
            "Check the path; to make a new file, use the type create_file",
        ),
        PatchTyped: Message(
            "not_a_program",
            "apply_patch is not a program here; nothing was run. Call the tool apply_patch",
            "Call apply_patch once for each file, with its type, its path and its diff",
        ),
    },
)
_API = "openai-responses"
_ACTIONS = {"create_file": Action.CREATE, "update_file": Action.UPDATE, "delete_file": Action.DELETE}
_DONE = {"create_file": "Created", "update_file": "Updated", "delete_file": "Deleted"}


class ShellAction(Params):
    commands: list[str] = field("The commands to run, one after the other, each in a shell of its own.", min_length=1)
    timeout_ms: int | None = field("Time limit of each command in milliseconds.", default=None, ge=1)
    max_output_length: int | None = field(
        "Characters of output that the API keeps of each command; the answer repeats it.", default=None, ge=1
    )


@dialect.tool("shell", Effect.RUN, builtin=Builtin(_API, {"type": "shell"}))
def shell(p: ShellAction, c: Call) -> ShellOutputs:
    """Run shell commands in the workspace and return the output of each."""
    seconds = None if p.timeout_ms is None else p.timeout_ms / 1000
    outputs: ShellOutputs = {"output": [_shell_output(ran) for ran in c.commands.run_all(p.commands, seconds=seconds)]}
    if p.max_output_length is not None:
        outputs["max_output_length"] = p.max_output_length
    return outputs


def _shell_output(ran: Ran) -> ShellCallOutput:
    return {
        "stdout": output_text("stdout", ran.outcome.stdout),
        "stderr": output_text("stderr", ran.outcome.stderr),
        "outcome": {"type": "timeout"} if ran.outcome.timed_out else {"type": "exit", "exit_code": ran.returncode},
    }


class PatchOperation(Params):
    type: Literal["create_file", "update_file", "delete_file"] = field("What to do with the file.")
    path: str = field("Path of the file, relative to the workspace root.", path=True)
    diff: str | None = field(
        "The new lines, each with + before it, or sections of lines with a space, - or + before each, "
        "after @@ and an optional line above them. Not for delete_file.",
        default=None,
        body=True,
    )
    move_to: str | None = field("New path of an updated file.", default=None, path=True)


@dialect.tool(
    "apply_patch",
    Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE,
    builtin=Builtin(_API, {"type": "apply_patch"}),
)
def apply_patch(p: PatchOperation, c: Call) -> OperationResult:
    """Create, update or delete one file by a diff without an envelope."""
    if p.diff is None and p.type != "delete_file" and not p.move_to:
        raise BadParameters([Problem("", "missing", "diff")])
    if p.move_to and p.type != "update_file":
        raise BadParameters([Problem("move_to", "unknown", "type, path, diff", "move_to")])
    outcomes = c.files.apply_operation(_ACTIONS[p.type], p.path, p.diff or "", p.move_to or "")
    moved = f" and moved it to {outcomes[-1].path}" if p.move_to else ""
    return {"status": "completed", "output": f"{_DONE[p.type]} {c.files.relative(p.path)}{moved}"}
