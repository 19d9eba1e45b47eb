"""Answers the items of OpenAI's Responses API that call its built-in tools."""

import json
import shlex
from typing import TYPE_CHECKING, Any

from handrail.tools.exports import Json, plain
from handrail.tools.exports.openai_api import answer_openai
from handrail.tools.tool import ToolResult

if TYPE_CHECKING:
    from handrail.tools.router import ToolRouter

_IN_COMMAND = ("type", "command", "env", "working_directory", "user")
"""The fields of a local shell's action that become a part of the command, or that the answer refuses."""
_FAILED = 1
"""The exit code of a command that was not run; the hint on standard error says why."""


def answer_item(router: "ToolRouter", item: Any) -> Json:
    """Run the call in an item and return the item that answers it. Raises ValueError for an item that is no call."""
    call = plain(item)
    kind = call.get("type")
    if kind == "shell_call":
        return _answer_shell(router, call)
    if kind == "apply_patch_call":
        return _answer_patch(router, call)
    if kind == "local_shell_call":
        return _answer_local_shell(router, call)
    if kind in ("function_call", "custom_tool_call"):
        return answer_openai(router, call)
    raise ValueError(f"an item of type {kind!r} is not a tool call")


def _answer_shell(router: "ToolRouter", call: Json) -> Json:
    params = _given(plain(call["action"]))
    output = _outputs(router.call("shell", params, call_id=call["call_id"]))
    length = {name: params[name] for name in params if name == "max_output_length"}
    return {"type": "shell_call_output", "call_id": call["call_id"], "output": output, **length}


def _answer_patch(router: "ToolRouter", call: Json) -> Json:
    params = _given(plain(call["operation"]))
    result = router.call("apply_patch", params, call_id=call["call_id"])
    made = "" if result.error else result.output_as(dict)["output"]
    said = _reason(result) if result.error else "\n".join(filter(None, (made, result.hints)))
    status = "failed" if result.error else "completed"
    return {"type": "apply_patch_call_output", "call_id": call["call_id"], "status": status, "output": said}


def _answer_local_shell(router: "ToolRouter", call: Json) -> Json:
    action = plain(call["action"])
    if action.get("user"):
        return _local_output(call, _not_run("commands cannot run as another user: leave out `user`"))
    others = {name: value for name, value in _given(action).items() if name not in _IN_COMMAND}
    params: Json = {"commands": [_local_command(action)]} | others
    (ran,) = _outputs(router.call("shell", params, call_id=call["call_id"]))
    return _local_output(call, ran)


def _local_output(call: Json, output: Json) -> Json:
    text = json.dumps(output, ensure_ascii=False)
    return {"type": "local_shell_call_output", "id": call["call_id"], "output": text, "status": "completed"}


def _local_command(action: Json) -> str:
    """Return the words of a command with its directory and variables as one line of shell text."""
    words = [*action["command"]]
    if action.get("env"):
        words = ["env", *(f"{name}={value}" for name, value in action["env"].items()), *words]
    line = shlex.join(words)
    return f"cd -- {shlex.quote(action['working_directory'])} && {line}" if action.get("working_directory") else line


def _outputs(result: ToolResult) -> list[Json]:
    """Return one output for each command; a call that was refused has a single one, with the reason."""
    if result.error:
        return [_not_run(_reason(result))]
    outputs = [dict(each) for each in result.output_as(dict)["output"]]
    if result.hints:
        outputs[-1]["stderr"] = "\n".join(filter(None, (outputs[-1]["stderr"].rstrip("\n"), result.hints)))
    return outputs


def _not_run(why: str) -> Json:
    return {"stdout": "", "stderr": why, "outcome": {"type": "exit", "exit_code": _FAILED}}


def _reason(result: ToolResult) -> str:
    message = result.error.message if result.error else ""
    return "\n".join(filter(None, (message, result.hints)))


def _given(values: Json) -> Json:
    """Return the fields that have a value; the tool refuses those that it does not know."""
    return {name: value for name, value in values.items() if value is not None}
