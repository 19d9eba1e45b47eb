"""Checks the text of a command before it is asked about."""

from typing import TYPE_CHECKING

from handrail.model.faults import EmptyCommand, PatchTyped
from handrail.model.hints import CarriageReturns
from handrail.ops.shell.typed_patch import types_patch

if TYPE_CHECKING:
    from handrail.runtime.call import Call


def check_command(call: "Call", text: str) -> None:
    """Raise EmptyCommand for a blank text, PatchTyped for a patch to `apply_patch`; warn of carriage returns."""
    if not text.strip():
        raise EmptyCommand
    if types_patch(text):
        raise PatchTyped
    has_returns = "\r\n" in text or text.endswith("\r")
    if has_returns and not any(isinstance(each, CarriageReturns) for each in call.warnings):
        call.warnings.append(CarriageReturns())
