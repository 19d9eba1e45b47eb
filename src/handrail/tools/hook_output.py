"""Checks the output that a hook gives in place of a tool's, before the model sees it."""

from typing import Any

from handrail.model.warnings import HookBroken
from handrail.runtime.call import Call
from handrail.tools.tool import Output, Tool

_OTHER = "the output that it gave has another form than the tool's"


def replaced(tool: Tool, call: Call, output: Output, given: Any) -> Output:
    """Return the output of a hook if it has the form of the tool's; otherwise the tool's own, with a warning."""
    if isinstance(output, str) and isinstance(given, str):
        return given
    required = (tool.output or {}).get("required", [])
    if not isinstance(output, str) and isinstance(given, dict) and all(name in given for name in required):
        return given
    call.warnings.append(HookBroken(_OTHER))
    return output
