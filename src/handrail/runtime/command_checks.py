"""Checks the text of a command before it is asked about, and remembers the last command."""

from typing import TYPE_CHECKING, NamedTuple

from handrail.model.faults import EmptyCommand, PatchTyped
from handrail.model.hints import CarriageReturns
from handrail.ops.shell.typed_patch import types_patch

if TYPE_CHECKING:
    from handrail.kernel.process.bounded_output import Output
    from handrail.runtime.call import Call


class LastCommand(NamedTuple):
    """Remembers the last command of a session, for the tools that ask for it."""

    command: str
    exit_code: int | None
    stdout: "Output"
    stderr: "Output"
    executed_at: float


def check_command(call: "Call", text: str) -> None:
    """Raise EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`; warn of carriage returns."""
    if not text.strip():
        raise EmptyCommand
    if types_patch(text):
        raise PatchTyped
    has_returns = "\r\n" in text or text.endswith("\r")
    if has_returns and not any(isinstance(each, CarriageReturns) for each in call.warnings):
        call.warnings.append(CarriageReturns())
