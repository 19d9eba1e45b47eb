"""Asks the questions that the suite expects in the stateless revision.

A request ends with questions and a sealed state; the client repeats it with answers and state. The state is sealed by
the code that seals Handrail's own approvals.
"""

from typing import Any

import mcp.types as t
from mcp.shared.exceptions import MCPError

from handrail.surfaces.mcp.sealed_state import Sealer, StateRefused

Json = dict[str, Any]
Round = dict[str, Json]
SEALER = Sealer(600)
NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def _form(name: str) -> Json:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": f"Your {name}?", "requestedSchema": schema}}


ROOTS: Json = {"method": "roots/list", "params": {}}
SAMPLE: Json = {
    "method": "sampling/createMessage",
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}], "maxTokens": 50},
}
ROUNDS: dict[str, list[Round]] = {
    "test_input_required_result_elicitation": [{"user_name": _form("name")}],
    "test_input_required_result_sampling": [{"capital_question": SAMPLE}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_multiple_inputs": [{"name": _form("name"), "greeting": SAMPLE, "roots": ROOTS}],
    "test_input_required_result_multi_round": [{"step1": _form("name")}, {"step2": _form("color")}],
    "test_input_required_result_capabilities": [{"name": _form("name"), "greeting": SAMPLE}],
    "test_input_required_result_prompt": [{"user_context": _form("context")}],
}


def open_question(context: Any, params: Any) -> Json | None:
    """Return the next question that the request needs, or None."""
    rounds = ROUNDS.get(params.name, [])
    number = _round(params.name, params.request_state)
    if number < len(rounds) and rounds[number].keys() <= (params.input_responses or {}).keys():
        number += 1
    if number >= len(rounds):
        return None
    able = context.session.client_capabilities
    asked = {key: each for key, each in rounds[number].items() if getattr(able, NEEDED[each["method"]])}
    state = SEALER.seal(params.name, {"round": number})
    return {"resultType": "input_required", "inputRequests": asked, "requestState": state}


def _round(call: str, state: str | None) -> int:
    try:
        return int(SEALER.open(call, state)["round"]) if state is not None else 0
    except StateRefused as reason:
        raise MCPError(t.INVALID_PARAMS, str(reason)) from None


def need_sampling(context: Any) -> None:
    able = context.session.client_capabilities
    if able is None or able.sampling is None:
        needed: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(t.MISSING_REQUIRED_CLIENT_CAPABILITY, "The client cannot sample", needed)
